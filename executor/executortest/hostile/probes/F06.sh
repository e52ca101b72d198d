tries file sh -c 'echo x >>"$1"' sh "$open"
tries 'new file' sh -c 'echo x >"$1"/new' sh "$writable"
tries removal mv -- "$open" "$open-moved"
