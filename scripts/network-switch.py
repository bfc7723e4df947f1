#!/usr/bin/env python3
"""A switch between network namespaces, with delay, rate and loss.

usage: scripts/network-switch.py [OPTIONS] NAME...

Makes a network namespace of each NAME, with the address 10.20.48.N/24 for the Nth name, and passes frames between them
until it is terminated. Then it removes the namespaces. It needs root, /dev/net/tun and iproute2. It stands in for the
queueing discipline netem, which many kernels of virtual machines lack. Frames have up to 9,000 bytes, because each one
costs the switch some 15 microseconds.
"""

import argparse
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MTU = 9000
# Bytes that Ethernet adds to a frame: preamble, checksum and gap.
FRAMING = 24
# Frames that would wait longer for their link are dropped, as in a switch with little memory.
QUEUE_SECONDS = 0.05


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Port:
    """The link of a namespace. Frames to it and from it wait until the link has sent the earlier ones."""

    def __init__(self, number, name, bits_per_second):
        self.seconds_per_byte = 8 / bits_per_second if bits_per_second else 0
        self.free_at = {"in": 0.0, "out": 0.0}
        self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        device = f"tap-{os.getpid()}-{number}"[:15]
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TAP | IFF_NO_PI))
        self.address = bytes([2, 0, 0, 0, 0, number])
        ip("netns", "add", name)
        ip("link", "set", device, "address", self.address.hex(":"), "mtu", str(MTU), "netns", name)
        ip("-n", name, "addr", "add", f"10.20.48.{number}/24", "dev", device)
        for link in ("lo", device):
            ip("-n", name, "link", "set", link, "up")

    def passes(self, direction, when, frame):
        """The time at which the link has passed a frame on that arrives at `when`; None if its queue is full."""
        begin = max(when, self.free_at[direction])
        if begin - when > QUEUE_SECONDS:
            return None
        self.free_at[direction] = begin + (len(frame) + FRAMING) * self.seconds_per_byte
        return self.free_at[direction]


def switch(ports, delay, loss):
    """Passes frames on. `delay` is the time in seconds from one namespace to another, `loss` a share of the frames."""
    by_tap = {port.tap: port for port in ports}
    by_address = {port.address: port for port in ports}
    on_the_way, number = [], 0
    while True:
        wait = max(0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        readable, _, _ = select.select(by_tap, [], [], wait)
        for tap in readable:
            source = by_tap[tap]
            for _ in range(64):
                try:
                    frame = os.read(tap, MTU + 100)
                except BlockingIOError:
                    break
                now = time.monotonic()
                target = by_address.get(frame[:6])
                if loss and random.random() < loss:
                    continue
                for to in [target] if target else [port for port in ports if port is not source]:
                    sent = source.passes("in", now, frame)
                    due = sent and to.passes("out", sent, frame)
                    if due:
                        number += 1
                        heapq.heappush(on_the_way, (due + delay, number, to.tap, frame))
        now = time.monotonic()
        while on_the_way and on_the_way[0][0] <= now:
            _, _, tap, frame = heapq.heappop(on_the_way)
            try:
                os.write(tap, frame)
            except (BlockingIOError, OSError):
                pass  # The namespace takes no more frames: this one is lost, as on a real link.


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--round-trip-ms", type=float, default=0, help="time to another namespace and back")
    parser.add_argument("--loss", type=float, default=0, help="share of the frames that get lost")
    parser.add_argument("--mbit", type=float, default=0, help="rate of each link in each direction (0: no limit)")
    parser.add_argument("--slow-mbit", type=float, default=0, help="rate of the last namespace's link instead")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    try:
        ports = []
        for number, name in enumerate(options.names, 1):
            is_slow = options.slow_mbit and number == len(options.names)
            mbit = options.slow_mbit if is_slow else options.mbit
            ports.append(Port(number, name, mbit * 1e6))
        print("ready", flush=True)
        switch(ports, options.round_trip_ms / 2000, options.loss)
    finally:
        for name in options.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


main()
