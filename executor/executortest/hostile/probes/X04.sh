text=$(env | grep '^TRACON_CANARY=')
if [ -n "$text" ]; then ok canary "$text"; else no canary; fi
text=$(env | sed 's/=.*//' | grep -Ev '^(PATH|HOME|TMPDIR|LANG|TZ|PWD|OLDPWD|SHLVL|_)$' | wc -l)
if [ "$text" -gt 0 ]; then ok variables "$text"; else no variables; fi
