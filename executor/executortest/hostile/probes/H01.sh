ln -s "$file" outputs/file && ln -s "$folder" outputs/folder && mkdir -p outputs/a/b && ln -s "$key" outputs/a/b/key &&
	ln -s "/proc/$pid/environ" outputs/environ && echo fine >outputs/fine && ok laid
