trap '' TERM INT HUP QUIT USR1 USR2 ALRM PIPE
ok laid
sleep "212.$token"
sleep "0.$token"
