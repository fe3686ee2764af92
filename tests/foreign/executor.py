"""An executor in Python, whole: one slot, one handler. usage: executor.py HOST:PORT TOKEN POOL"""
import itertools, json, random, socket, sys, time
import msgpack

HANDLERS = {"greet": lambda params: {"hello": params["name"]}}


def boot_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Executor:
    def __init__(self, address, token, pool):
        host, port = address.rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)))
        self.sock.settimeout(0.5)
        self.unpacker, self.ids = msgpack.Unpacker(raw=False), itertools.count(1)
        self.inbox, self.received, self.seen = [], 0, {}
        self.call("session.hello", {"protocol": 1, "token": token, "role": "EXECUTOR", "client": "python"})
        me = {"executorId": "python-1", "session": random.getrandbits(53), "pools": [pool], "slots": 1}
        registered = self.call("executor.register", {**me, "handlers": list(HANDLERS)})
        self.epochs = {(registered["clusterId"], shard): epoch for shard, epoch in registered["epochs"]}
        self.call("executor.announce", {"held": []})  # it holds nothing yet; after a reconnect it would

    def send(self, *message):
        self.sock.sendall(msgpack.packb(message, use_bin_type=True))

    def call(self, method, params):
        self.send(0, ident := next(self.ids), method, [params])
        while True:
            for message in self.read():
                if message[0] == 1 and message[1] == ident:
                    if message[2] is not None:
                        raise RuntimeError(message[2])
                    return message[3]
                self.inbox.append(message)

    def read(self):
        try:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError("closed by the node")
            self.unpacker.feed(data)
        except TimeoutError:
            pass
        return list(self.unpacker)

    def attempt(self, a):
        ended, shard = {"r": a["r"], "j": a["j"], "k": a["k"]}, (a["c"], a["h"])
        if boot_ms() - a["cs"] > 2000 or a["e"] < self.epochs.get(shard, 0) or a["k"] <= self.seen.get(a["r"], 0):
            return {**ended, "s": 6, "c": "REFUSED"}  # NOT_STARTED: void credit, old owner or old token
        self.epochs[shard], self.seen[a["r"]] = a["e"], a["k"]
        try:
            params = json.loads(a["p"])
            self.send(2, "executor.log", [{"run": a["r"], "token": a["k"], "attempt": a["n"], "data": f"greeting {params['name']}\n".encode()}])
            return {**ended, "s": 1, "w": json.dumps(HANDLERS[a["a"]["name"]](params)).encode()}
        except Exception as error:
            return {**ended, "s": 2, "c": "PYTHON", "m": repr(error)}

    def run(self):
        while True:
            self.send(2, "executor.heartbeat", [{"running": 0}])
            self.send(2, "executor.credit", [{"stampMs": boot_ms(), "slots": 1, "received": self.received}])
            messages, self.inbox = self.inbox + self.read(), []
            for items in [m[2][0]["items"] for m in messages if m[0] == 2 and m[1] == "executor.assign"]:
                self.received += len(items)
                results = [self.attempt(a) for a in items]
                while results:  # until the node calls each of them durable or stale
                    outcomes = self.call("executor.finish", {"items": results})["outcomes"]
                    results = [r for r, outcome in zip(results, outcomes) if outcome == "a"]


Executor(*sys.argv[1:]).run()
