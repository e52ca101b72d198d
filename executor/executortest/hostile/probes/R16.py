# What nobody maps is dropped from the memory that all share: whoever reads it
# next waits for the disk.
fd = os.open(P['shared'], os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
say('laid', 'ok')
