# Zygote of warm starts: an interpreter that has started, and forks once for each run. The fork
# confines itself as a process does on its way to its program, and then runs the script as its main
# module. Descriptor 3 is a socket of packets. The first packet is this file; then come the
# settings, and one request for each run. An error before the script begins is reported, and the
# run is started in the ordinary way.


def wait_for_runs():
    """Serve requests. Returns, in the process of a run, the function that runs its script."""
    import sys

    main = sys.modules["__main__"].__dict__
    started = set(sys.modules)
    import atexit
    import ctypes
    import gc
    import os
    import _io
    import _socket
    import _weakref

    # CLONE_PARENT, CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, SIGCHLD.
    CLONE_FLAGS = 0x8000 | 0x200000 | 0x1000000 | 17
    PR_SET_DUMPABLE, PR_SET_SECCOMP_FILTER, PR_GET_TID_ADDRESS, RLIMIT_LOCKS = 4, 1, 40, 10
    NUMBERS = {
        "x86_64": {"clone": 56, "prctl": 157, "prlimit": 302, "seccomp": 317, "landlock": 446},
        "aarch64": {"clone": 220, "prctl": 167, "prlimit": 261, "seccomp": 277, "landlock": 446},
    }[os.uname().machine]
    # It keeps the lock of the interpreter, as `os.fork` does.
    library = ctypes.PyDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    python = ctypes.pythonapi
    channel = _socket.socket(fileno=3)

    def call(name, *arguments):
        numbers = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
        result = library.syscall(ctypes.c_long(NUMBERS[name]), *numbers)
        if result < 0:
            raise OSError(ctypes.get_errno(), "system call " + name)
        return result

    def set_limit(resource, soft, hard):
        limit = (ctypes.c_uint64 * 2)(soft, hard)
        call("prlimit", 0, resource, ctypes.byref(limit), None)

    # Exit code of a script that has ended; `None` lets the interpreter end it in its own way.
    ending = {"code": None}
    known = set()

    def end_fast():
        """End a run after its last exit function.

        The interpreter would tear down all objects that it has started with, which copies each page
        of the zygote. So only what came with the script is torn down, in the same order.
        """
        if ending["code"] is None:
            return
        try:
            sys.stdout.flush(), sys.stderr.flush()
        except Exception:
            return  # The interpreter fails in the same way, and says so.
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            if hasattr(sys, name):
                setattr(sys, name, None)
        names = [name for name in sys.modules if name not in known]
        modules = [sys.modules.pop(name) for name in names]
        modules = [_weakref.ref(module) for module in modules if isinstance(module, type(sys))]
        gc.collect()
        left = [module() for module in reversed(modules)]
        for values in [vars(module) for module in left if module is not None] + [main]:
            for is_private in (True, False):
                for name in list(values):
                    is_own = name != "__builtins__" and values[name] is not None
                    if is_own and is_private == (name[:1] == "_" != name[1:2]):
                        values[name] = None
        gc.collect()
        for thing in gc.get_objects():
            try:
                if isinstance(thing, _io._IOBase) and not thing.closed:
                    thing.flush()
            except Exception:
                pass
        try:
            sys.stdout.flush(), sys.stderr.flush()
        except Exception:
            pass
        os._exit(ending["code"])

    atexit.register(end_fast)
    modules, code, *given = channel.recv(1 << 18).split(b"\0")
    changes = set(os.environ._data.items()) ^ {entry.partition(b"=")[::2] for entry in given}
    # The interpreter sets this one itself, in a run as here.
    coerced = os.environ._data.get(b"LC_CTYPE")
    changes.discard((b"LC_CTYPE", coerced))
    if changes:
        raise RuntimeError("a launcher changes the environment: " + min(changes)[0].decode())
    code = bytes.fromhex(code.decode())
    if code:
        instructions = ctypes.create_string_buffer(code, len(code))

        class Filter(ctypes.Structure):
            _fields_ = [("length", ctypes.c_ushort), ("first", ctypes.c_void_p)]

        program = Filter(len(code) // 8, ctypes.addressof(instructions))
    # Whatever runs with the rights of this user can't look into a process that is not dumpable.
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)
    # The C library keeps the number of the thread there; a fork by the library updates it.
    thread_number = ctypes.c_void_p()
    call("prctl", PR_GET_TID_ADDRESS, ctypes.byref(thread_number), 0, 0, 0)

    has_own_path = not (sys.flags.isolated or getattr(sys.flags, "safe_path", False))
    if has_own_path:
        del sys.path[0]
    own = set(sys.modules) - started
    for module in filter(None, modules.decode().split(",")):
        __import__(module)
        own.difference_update(name for name in list(own) if name.split(".")[0] == module)
    for name in own:
        del sys.modules[name]
    for name in ("wait_for_runs", "posix"):
        main.pop(name, None)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    with open("/proc/self/status", "rb") as status:
        threads = [line.split()[1] for line in status if line.startswith(b"Threads:")]
    if threads != [b"1"]:
        raise RuntimeError("a module has started threads, which a fork would lack")
    # The first call makes the classes of syntax trees, for which each fork would need 0.6 ms.
    compile("", "", "exec")
    known.update(sys.modules)
    gc.collect()
    gc.freeze()

    def enter(request, descriptors):
        """Confine this process, and return the script with its text and arguments."""
        script, line, directory, limits, mark, switches, count = request[:7]
        count = 7 + int(count)
        has_session, has_group, has_filter = (letter in switches for letter in (b"s", b"c", b"f"))
        os.setsid() if has_session else os.setpgid(0, 0)
        for number in range(3):
            os.dup2(descriptors[number], number)
        rest = descriptors[4:]
        for limit in filter(None, limits.split(b",")):
            set_limit(*map(int, limit.split(b":")))
        if has_group:
            os.write(rest.pop(0), b"0")
        if mark:
            set_limit(RLIMIT_LOCKS, int(mark), int(mark))
        if directory:
            os.chdir(directory)
        call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
        for ruleset in rest:
            call("landlock", ruleset, 0)
        with open(script, "rb") as file:
            text = file.read()
        if not text.startswith(line):
            raise RuntimeError("the first line of the script has changed")
        if has_filter:
            call("seccomp", PR_SET_SECCOMP_FILTER, 0, ctypes.byref(program))
        set_environment([entry.partition(b"=")[::2] for entry in request[count:]])
        return os.fsdecode(script), text, [os.fsdecode(one) for one in request[7:count]]

    def set_environment(variables):
        old, new = os.environ._data, dict(variables)
        if coerced is not None and b"LC_CTYPE" not in new:
            new[b"LC_CTYPE"] = coerced
        for name in [name for name in old if name not in new]:
            os.unsetenv(name)
        for name, value in new.items():
            if old.get(name) != value:
                os.putenv(name, value)
        old.clear()
        old.update(new)

    def run(script, text, arguments):
        """Run the script as the main module, as the interpreter does."""
        sys.argv[:] = [script, *arguments]
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[-2:] = sys.argv
        if has_own_path:
            sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
        main.update(__file__=script, __cached__=None, __loader__=loader("__main__", script))
        try:
            exec(compile(text, script, "exec", 0, True), main)
            ending["code"] = 0
            # The interpreter waits for threads, and calls exit functions with nothing below them.
            if "threading" not in sys.modules and atexit._ncallbacks() == 1:
                end_fast()
        except SystemExit as error:
            code = 0 if error.code is None else error.code
            ending["code"] = code & 0xFF if isinstance(code, int) else 1
            raise
        except BaseException as error:
            below = error.__traceback__.tb_next
            if isinstance(error, SyntaxError) and below is None:
                error.__traceback__ = None
            hook = sys.excepthook

            def show(kind, error, _):
                sys.excepthook = hook
                error.__traceback__ = below
                hook(kind, error, below)

            sys.excepthook = show
            ending["code"] = None if isinstance(error, KeyboardInterrupt) else 1
            raise

    # With another version of one of these, another interpreter has to be started.
    ahead = [module for name, module in sys.modules.items() if name not in started]
    files = {getattr(module, "__file__", None) for module in ahead}
    files.add(sys.executable)
    channel.send(b"ready %d %d" % (os.getpid(), os.getppid()))
    channel.send(b"\0".join(sorted(os.fsencode(file) for file in files if file)))
    while True:
        data, messages, _, _ = channel.recvmsg(1 << 18, 1024, 0x40000000)
        if not data:
            os._exit(0)
        descriptors = []
        for _, _, numbers in messages:
            for at in range(0, len(numbers), 4):
                descriptors.append(int.from_bytes(numbers[at : at + 4], sys.byteorder))
        python.PyOS_BeforeFork()
        try:
            pid = call("clone", CLONE_FLAGS, None, None, thread_number, thread_number)
        except OSError:
            pid = -1
        if pid == 0:
            python.PyOS_AfterFork_Child()
            break
        python.PyOS_AfterFork_Parent()
        os.write(descriptors[3], b"pid %d\n" % pid)
        for number in descriptors:
            os.close(number)
    report = descriptors[3]
    channel.close()
    try:
        entered = enter(data.split(b"\0"), descriptors)
        for number in descriptors:
            if number != report:
                os.close(number)
        os.write(report, b"ok\n")
        os.close(report)
    except BaseException as error:
        os.write(report, b"failed %s\n" % ascii(error).encode())
        os._exit(127)
    return lambda: run(*entered)


wait_for_runs()()
