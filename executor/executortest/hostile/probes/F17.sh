for d in outputs "$TMPDIR" "$HOME" .; do
	mkdir "$d/farm"
	ln -s "$folder" "$d/farm/folder"
	ln -s "$open" "$d/farm/file"
done
ok laid
