//! Scripts of Python that are started both warm and cold, each with a name. What they print must
//! not depend on their number, on time or on their directory for temporary files.

/// Scripts as authors write them.
pub(crate) const ORDINARY: &[(&str, &str)] = &[
    (
        "greet",
        "import json, sys\nprint('Hello,', json.load(sys.stdin)['name'])",
    ),
    ("exit code", "import sys\nsys.exit(3)"),
    ("exit code beyond a byte", "import sys\nsys.exit(256 + 7)"),
    ("exit code is no number", "import sys\nsys.exit('a reason')"),
    ("exit with None", "import sys\nsys.exit(None)"),
    ("exit with True", "import sys\nsys.exit(True)"),
    ("exit with a list", "raise SystemExit([1, 2])"),
    ("exception", "def f():\n  raise ValueError('x')\nf()"),
    (
        "exception with a cause",
        "try:\n  1 / 0\nexcept ZeroDivisionError as e:\n  raise RuntimeError('y') from e",
    ),
    ("syntax error", "print('before')\nif:\n"),
    (
        "own hook",
        "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[2].tb_lineno)\n1 / 0",
    ),
    ("interrupt", "raise KeyboardInterrupt"),
    ("missing module", "import no_such_module_at_all"),
    (
        "names",
        "import sys, os\nprint(sys.argv[1:], os.path.basename(sys.argv[0]), sys.argv[0] == __file__, __name__, __doc__, __package__, __spec__, type(__loader__), sorted(globals()))",
    ),
    (
        "interpreter",
        "import sys, os\nprint(sys.executable, sys.flags, sys.version, sys.orig_argv[-1] == __file__, len(sys.orig_argv), os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)), sys.path[1:], sys.getrecursionlimit(), sys.getfilesystemencoding())",
    ),
    (
        "environment",
        "import os\nprint([e for e in os.environ.items() if e[0] not in ('TMPDIR', 'XDG_CACHE_HOME')], os.getcwd())",
    ),
    (
        "environment of a child",
        "import subprocess\nprint(sorted(l for l in subprocess.check_output(['env'], text=True).splitlines() if not l.startswith(('TMPDIR=', '_=', 'PYENV', 'PATH='))))",
    ),
    (
        "streams",
        "import sys, os\nfor s in sys.stdin, sys.stdout, sys.stderr: print(s.isatty(), s.seekable(), s.encoding, s.errors, s.line_buffering, s.fileno())\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3])",
    ),
    (
        "process",
        "import os\nprint(os.getpid() == os.getpgrp(), os.umask(0), os.nice(0), os.getppid() > 0)\nfor line in open('/proc/self/status'):\n  if line.startswith(('SigP', 'SigB', 'SigI', 'SigC', 'Shd', 'Cap', 'NoNewPrivs', 'Seccomp:', 'Groups', 'Uid', 'Gid', 'Threads')): print(line, end='')",
    ),
    (
        "limits",
        "import resource\nfor n in sorted(dir(resource)):\n  if n.startswith('RLIMIT_'): print(n, resource.getrlimit(getattr(resource, n)))",
    ),
    (
        "descriptors",
        "import os\nprint([os.readlink('/proc/self/fd/%s' % n).split(':')[0] for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/%s' % n)])",
    ),
    (
        "end",
        "import atexit, threading, time\natexit.register(print, 'exit function')\nclass D:\n  def __del__(self): print('deleted')\nd = [D()]; d.append(d)\nthreading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()",
    ),
    (
        "unclosed file",
        "import builtins, os, json\ndef path(n): return (os.environ.get('TMPDIR') or '.') + '/unclosed-' + n\nfor n, o in ('a', None), ('b', builtins), ('c', json):\n  f = open(path(n), 'w'); f.write('kept'); o and setattr(o, 'f', f)\nif os.fork() == 0:\n  os._exit(0)\nos.wait()\nopen(path('d'), 'w').write('x')\nprint(os.path.getsize(path('d')))",
    ),
    (
        "child of multiprocessing",
        "import multiprocessing\ndef f(x): return x * x\nif __name__ == '__main__':\n  c = multiprocessing.get_context('fork')\n  a, b = c.Pipe()\n  p = c.Process(target=lambda: b.send(f(4)))\n  p.start(); print(a.recv()); p.join()",
    ),
    (
        "modules of the bootstrap",
        "import sys\nbefore = [n for n in ('ctypes', '_socket', '_ctypes', 'atexit', 'gc', 'struct') if n in sys.modules]\nimport ctypes, socket, gc, struct\nprint(before, ctypes.CDLL(None).getpid() > 0, struct.calcsize('P'), socket.AF_UNIX, gc.isenabled())",
    ),
    (
        "signals",
        "import signal\nprint([(s, str(signal.getsignal(s))) for s in sorted(signal.valid_signals()) if signal.getsignal(s) is not signal.SIG_DFL])",
    ),
    (
        "async",
        "import asyncio\nasync def f():\n  await asyncio.sleep(0)\n  return 7\nprint(asyncio.run(f()))",
    ),
    ("input is not read", "print('done')"),
    ("coding", "# -*- coding: latin-1 -*-\nprint('\u{e9}')"),
];

/// Scripts that do harm, or are killed.
pub(crate) const HOSTILE: &[(&str, &str)] = &[
    (
        "own signal",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    ),
    ("abort", "import os\nprint('x', flush=True)\nos.abort()"),
    ("segmentation fault", "import ctypes\nctypes.string_at(0)"),
    (
        "exit without an end",
        "import os\nprint('lost?')\nos._exit(9)",
    ),
    (
        "endless",
        "import time\nprint('on', flush=True)\nwhile True: time.sleep(1)",
    ),
    (
        "ignores TERM",
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('on', flush=True)\nwhile True: time.sleep(1)",
    ),
    (
        "handles TERM",
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(4))\nprint('on', flush=True)\nwhile True: time.sleep(1)",
    ),
    (
        "flood",
        "import sys\nwhile True: sys.stdout.write('x' * 65536)",
    ),
    (
        "closed output",
        "import os, sys\nos.close(1)\nprint('to nowhere')",
    ),
    (
        "descriptors used up",
        "import os\nopened = []\ntry:\n  while True: opened.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError as e: print(e.errno, opened[-1])",
    ),
    (
        "large file",
        "import os\nd = os.environ.get('TMPDIR') or '.'\ntry:\n  with open(d + '/large', 'wb') as f: f.write(b'x' * (1 << 17))\nexcept OSError as e: print(e.errno)",
    ),
    (
        "leftover",
        "import subprocess\nsubprocess.Popen(['sleep', '30'], stdin=-3, stdout=-3, stderr=-3)\nprint('left')",
    ),
    (
        "daemon",
        "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  for n in 0, 1, 2: os.close(n)\n  time.sleep(30); os._exit(0)\nos.wait()\nprint('left')",
    ),
    (
        "writes elsewhere",
        "import os\nfor path in '/etc/mcpd-test', '/usr/mcpd-test', '/var/tmp/mcpd-test':\n  path += '-%d' % os.getpid()\n  try: open(path, 'w').close(); os.remove(path); print('written')\n  except OSError as e: print(e.errno)",
    ),
    (
        "reads secrets",
        "import os\nfor path in '/etc/shadow', '/root/.ssh', os.path.expanduser('~/.ssh'):\n  try: print(bool(os.listdir(path) if os.path.isdir(path) else open(path).read()))\n  except OSError as e: print(e.errno)",
    ),
    (
        "network",
        "import socket\nfor f, k in (socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_UNIX, socket.SOCK_STREAM), (socket.AF_PACKET, socket.SOCK_RAW):\n  try: socket.socket(f, k).close(); print('made')\n  except OSError as e: print(e.errno)",
    ),
    (
        "system calls",
        "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nfor n in 'unshare', 'setns', 'chroot', 'ptrace':\n  print(n, getattr(l, n)(-1 if n != 'chroot' else b'/nowhere', 0, 0, 0) < 0, ctypes.get_errno() in (1, 2, 3, 22))",
    ),
    (
        "sets its mark",
        "import resource, ctypes\ntry: resource.setrlimit(10, (1, 1)); print('set')\nexcept (OSError, ValueError) as e: print(type(e).__name__)",
    ),
    (
        "attacks on the parent's children",
        "import os\nparent = str(os.getppid())\nfor p in os.listdir('/proc'):\n  if not p.isdigit() or p == str(os.getpid()): continue\n  try:\n    status = open(f'/proc/{p}/status').read(); line = open(f'/proc/{p}/cmdline').read()\n  except OSError: continue\n  if 'mcpd-warm' not in line or f'PPid:\\t{parent}\\n' not in status: continue\n  try: os.close(os.open(f'/proc/{p}/mem', os.O_RDWR)); assert os.getuid() == 0, 'memory of a zygote is open'\n  except OSError: pass\nprint('tried')",
    ),
    (
        "deep recursion",
        "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('caught')",
    ),
    (
        "tears down",
        "import sys, gc, atexit\natexit._clear()\nsys.modules.clear()\nsys.stdout.write('bye\\n')",
    ),
    (
        "replaces exit",
        "import atexit, os\natexit.register(lambda: os._exit(5))\nprint('x', flush=True)",
    ),
    (
        "exception at the end",
        "import atexit\natexit.register(int, 'x')",
    ),
];
