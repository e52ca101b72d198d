tell('file of the host', lambda: (os.link(P['file'], TMP + '/link'), read(TMP + '/link'))[1])
tell('file for writing', lambda: (os.link(P['open'], TMP + '/open'), write(TMP + '/open', 'changed'))[1])
tell('moved', lambda: (os.rename(P['key'], TMP + '/key'), read(TMP + '/key'))[1])
