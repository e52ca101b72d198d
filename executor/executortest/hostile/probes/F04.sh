reads dots "../../../../../../../../../../../../../../../../../../..$file"
ln -s "$file" outputs/to-the-host 2>/dev/null
reads 'link in outputs' outputs/to-the-host
reads 'root of itself' "/proc/self/root$file"
reads 'folder of itself' "/proc/self/cwd/../../../../../../../../../../../../../..$file"
reads 'root of a process of the host' "/proc/$pid/root$file"
reads 'folder of a process of the host' "/proc/$pid/cwd/${file##*/}"
