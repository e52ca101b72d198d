reads file "$file"
reads 'private file' "$key"
if text=$(ls -- "$folder" 2>/dev/null); then ok folder "$text"; else no folder; fi
if text=$(ls -- /root 2>/dev/null); then ok home; else no home; fi
if head -c 1 /etc/shadow >/dev/null 2>&1; then ok shadow; else no shadow; fi
reads machine /etc/machine-id
