# The agent starts Python with this before a run is known. It waits to be told a folder,
# a script and its words, and becomes that script. It imports nothing that Python has not
# imported by itself. Where Python would read the script in another way, or anything is
# not as expected, it ends without a word, and the agent starts the script as ever.
def wait(exec=exec, kind=type, BaseException=BaseException, SystemExit=SystemExit, KeyboardInterrupt=KeyboardInterrupt):
    import os, sys

    names = globals()
    try:
        os.write(6, b"w")
        told = b""
        while more := os.read(5, 65536):
            told += more
        folder, *words = map(os.fsdecode, told.split(b"\0"))
        os.chdir(folder)
        script = words[0]
        with open(script, "rb") as f:
            source = f.read()
        if "\0" in source.decode():
            os._exit(1)
        sys.argv[:] = words
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[-1:] = words
        sys.path[0] = os.path.dirname(script)
        sys.path_importer_cache[script] = sys.path_importer_cache.pop(names["__file__"], None)
        names["__file__"] = script
        names["__loader__"] = kind(names["__loader__"])("__main__", script)
        del names["wait"]
        os.close(5)
        os.write(6, b"g")
        os.close(6)
    except BaseException:
        os._exit(1)
    try:
        exec(compile(source, script, "exec", dont_inherit=True), names)
    except SystemExit:
        raise
    except BaseException as e:
        # As Python itself does it, without what stands here.
        skip = e.__traceback__.tb_next
        e.__traceback__ = skip
        sys.last_type, sys.last_value, sys.last_traceback = kind(e), e, skip
        if sys.version_info >= (3, 12):
            sys.last_exc = e
        sys.excepthook(kind(e), e, skip)
        if kind(e) is not KeyboardInterrupt:
            raise SystemExit(1)
        sys.excepthook = lambda *told: None  # it was told; Python ends by its signal
        raise


wait()
