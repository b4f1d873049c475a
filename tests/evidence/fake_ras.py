"""A server that speaks as NCCL's RAS does (src/ras/client_support.cc), for as long as the test runs."""
import json
import socketserver
import threading


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        server = self.server
        form = "text"
        while line := self.rfile.readline().decode().strip():
            server.heard.append(line)
            word = line.lower()
            if server.mute:
                server.released.wait()
            elif word.startswith("client protocol "):
                self.wfile.write(b"SERVER PROTOCOL 2\n")
            elif word.startswith("timeout "):
                self.wfile.write(b"OK\n")
            elif word.startswith("set format ") and server.knows_json:
                form = word.split()[-1]
                self.wfile.write(b"OK\n")
            elif word in ("status", "verbose status"):
                self.wfile.write(server.answer(form).encode())
                return  # it hangs up after its answer
            else:
                self.wfile.write(f"ERROR: Unknown command {line}\n".encode())


class FakeRas(socketserver.ThreadingTCPServer):
    """`ranks`: rank → (pid, launched all-reduces, or None where its process does not answer)."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, ranks, knows_json=True, mute=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.ranks, self.knows_json, self.mute = ranks, knows_json, mute
        self.heard, self.released = [], threading.Event()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_address[1]}"

    def answer(self, form):
        return self.as_json() if form == "json" else self.as_text()

    def as_json(self):
        def known(rank, pid):
            return {"rank": rank, "host": "127.0.0.1", "pid": pid, "cuda_dev": rank, "nvml_dev": rank}
        here = [dict(known(rank, pid), collective_counts={"AllReduce": count, "AllGather": 0},
                     status={"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False,
                             "abort_flag": False})
                for rank, (pid, count) in self.ranks.items() if count is not None]
        gone = [dict(known(rank, pid), status={"unresponsive": True, "considered_dead": False})
                for rank, (pid, count) in self.ranks.items() if count is None]
        text = json.dumps({"nccl_version": "2.28.9", "communicators_count": 1, "communicators": [
            {"hash": "0xd1f2", "secondary_hash": "0x1:0x2", "size": len(self.ranks), "ranks_count": len(here),
             "missing_ranks_count": len(gone), "ranks": here, "missing_ranks": gone}],
            "ras": {"collection_time_sec": 0.01, "timeouts_count": 0}}, indent=2)
        # The comma that 2.28.7 and 2.28.9 forget.
        head, *tail = text.split('"missing_ranks": [')
        return '"missing_ranks": ['.join([head, *(part.replace('"nvml_dev": 1,\n', '"nvml_dev": 1\n') for part in tail)])

    def as_text(self):
        counts = [count for _, count in self.ranks.values()]
        usual = max(set(counts), key=counts.count)
        lines = ["NCCL version 2.27.7 compiled with CUDA 12.9", "CUDA runtime version 12090, driver version 13000", "",
                 "Job summary", "===========", "", "Errors", "======", "", "Warnings", "========", "",
                 "#0-0 (d1f2) MISMATCH", "  Communicator ranks have different AllReduce operation counts",
                 f"  {counts.count(usual)} ranks have launched up to operation {usual}"]
        lines += [f"  Rank {rank} has launched up to operation {count} -- GPU {rank} managed by process {pid} on node 127.0.0.1"
                  for rank, (pid, count) in self.ranks.items() if count != usual]
        return "\n".join(lines) + "\n\n"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.released.set()
        self.shutdown()
        self.server_close()
