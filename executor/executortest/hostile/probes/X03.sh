reads environment "/proc/$pid/environ"
reads 'command line' "/proc/$pid/cmdline"
reads 'memory map' "/proc/$pid/maps"
if text=$(ls /proc/$pid/fd 2>/dev/null) && [ -n "$text" ]; then ok descriptors "$text"; else no descriptors; fi
