text=$(cd / && for d in home root var boot srv mnt media opt sys run; do [ -d "$d" ] && printf '%s ' "$d"; done)
if [ "$(printf %s "$text" | wc -w)" -gt 2 ]; then ok root "$text"; else no root "$text"; fi
if text=$(ls /var 2>/dev/null) && [ -n "$text" ]; then ok var "$text"; else no var; fi
if text=$(ls /sys 2>/dev/null) && [ -n "$text" ]; then ok sys "$text"; else no sys; fi
if [ -w /usr ] || [ -w /etc ]; then ok 'folders of programs for writing'; else no 'folders of programs for writing'; fi
if grep -Eq ' - (sysfs|cgroup2?|devpts|mqueue) ' /proc/self/mountinfo; then ok 'file systems of the kernel'; else no 'file systems of the kernel'; fi
