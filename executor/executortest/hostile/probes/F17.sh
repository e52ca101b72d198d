for d in outputs "$TMPDIR" "$HOME" .; do
	mkdir "$d/links"
	ln -s "$folder" "$d/links/folder"
	ln -s "$open" "$d/links/file"
done
ok laid
