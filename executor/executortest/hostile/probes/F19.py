say('folder', 'ok', os.getcwd())
say('script', 'ok', os.path.realpath(__file__))
say('temporary folder', 'ok', os.path.realpath(TMP))
