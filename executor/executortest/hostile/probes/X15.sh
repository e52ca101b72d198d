(setsid sleep "212.$token" >/dev/null 2>&1 </dev/null &)
ok laid
