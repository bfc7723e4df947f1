#!/usr/bin/env python3
"""Runs the containers of rendered manifests as processes of this machine, and probes them as kubelet would.

No Kubernetes is involved. The script checks that the programs understand their arguments and environment, pass their
probes, solve the job of the manifests after a cancellation, answer queries, and end cleanly on SIGTERM.
scripts/ci-k8s.sh calls it in a separate network, with names of pods and services in /etc/hosts. Every pod has an address
there, and every container has its own process numbers. So all programs are process 1, as in containers.
"""

import argparse
import base64
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

import grpc
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

# The last numbers of the pods' addresses.
PODS = {
    "exact2048-coordinator": [1],
    "exact2048-worker": [2, 3],
    "exact2048-query": [4],
    "exact2048-submit": [5],
}
FAMILIES = {"IPv4": "10.20.48.", "IPv6": "fd20:48::"}
NAMESPACE = "exact2048"


def addresses(family):
    """The addresses of the pods of each workload."""
    return {name: [f"{FAMILIES[family]}{last}" for last in numbers] for name, numbers in PODS.items()}


def make_network(family):
    """Adds the addresses of all pods to this machine's separate network."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for ip in (ip for ips in addresses(family).values() for ip in ips):
        subprocess.run(["ip", "address", "add", f"{ip}/{128 if ':' in ip else 32}", "dev", "lo"], check=True)


def names(family):
    """Lines of /etc/hosts for the Services."""
    pods = addresses(family)
    services = [f"{pods[service][0]} {service}" for service in ("exact2048-coordinator", "exact2048-query")]
    return services + [f"{ip} {re.sub('[.:]', '-', ip)}.exact2048-worker.{NAMESPACE}.svc" for ip in pods["exact2048-worker"]]


def host(ip):
    """An address in the form of URLs."""
    return f"[{ip}]" if ":" in ip else ip


def metric(pod, name):
    """The current value of a metric without labels."""
    with urllib.request.urlopen(f"http://{host(pod.ip)}:9464/metrics", timeout=5) as answer:
        return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])


class Pod:
    """One pod: its processes, with only the environment and the arguments of the manifest."""

    def __init__(self, manifests, workload, ip, place):
        self.name = f"{workload['metadata']['name']}-{re.split('[.:]', ip)[-1]}"
        self.spec = workload["spec"]["template"]["spec"]
        self.manifests, self.ip, self.place = manifests, ip, place
        self.folders = {}
        for volume in self.spec.get("volumes", []):
            if "emptyDir" in volume:
                self.folders[volume["name"]] = place.work / self.name / volume["name"]
                self.folders[volume["name"]].mkdir(parents=True)
            elif "persistentVolumeClaim" in volume:
                self.folders[volume["name"]] = place.work / volume["persistentVolumeClaim"]["claimName"]
                self.folders[volume["name"]].mkdir(exist_ok=True)
            elif "secret" in volume:
                self.folders[volume["name"]] = place.tls
        self.log = open(place.work / f"{self.name}.log", "wb")
        self.process = None

    def value(self, container, entry):
        """The value of one variable of a container."""
        if "value" in entry:
            return entry["value"]
        source = entry["valueFrom"]
        if "fieldRef" in source:
            return {"status.podIP": self.ip, "metadata.namespace": NAMESPACE}[source["fieldRef"]["fieldPath"]]
        assert source["resourceFieldRef"]["resource"] == "requests.cpu", source
        assert container["resources"]["requests"]["cpu"].isdigit(), "threads from a part of a CPU"
        return "1"

    def start(self, container):
        """Starts a container's process."""
        environment = {}
        for source in container.get("envFrom", []):
            if "configMapRef" in source:
                environment |= self.manifests["ConfigMap", source["configMapRef"]["name"]]["data"]
            else:
                environment |= self.manifests["Secret", source["secretRef"]["name"]]["decoded"]
        for entry in container.get("env", []):
            environment[entry["name"]] = self.value(container, entry)

        def local(text):
            text = re.sub(r"\$\((\w+)\)", lambda match: environment.get(match[1], match[0]), text)
            text = text.replace("$$(", "$(")
            text = re.sub(r"(?<==)(0\.0\.0\.0|\[::\]):", f"{host(self.ip)}:", text)
            for mount in container.get("volumeMounts", []):
                text = re.sub(rf"{mount['mountPath']}(?=/|\s|$)", str(self.folders[mount["name"]]), text)
            return text

        command = [local(text) for text in container.get("command", ["exact2048"]) + container.get("args", [])]
        environment = {name: local(value) for name, value in environment.items()}
        environment["PATH"] = f"{self.place.program.parent}:/usr/bin:/bin"
        self.log.write(f"\n==> {command}\n".encode())
        self.log.flush()
        command = ["unshare", "--pid", "--fork", "--kill-child", *command]
        return subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log, cwd="/")

    def run(self):
        """Runs the init containers to their ends, and starts the container."""
        for container in self.spec.get("initContainers", []):
            code = self.start(container).wait(timeout=60)
            assert code == 0, f"{container['name']} of {self.name} ended with {code}"
        self.process = self.start(self.spec["containers"][0])

    def healthy(self, kind):
        """Performs a probe once."""
        assert self.process.poll() is None, f"{self.name} ended with {self.process.returncode}"
        container = self.spec["containers"][0]
        probe = container.get(kind)
        if probe is None:
            return True
        if "grpc" in probe:
            with grpc.insecure_channel(f"{host(self.ip)}:{probe['grpc']['port']}") as channel:
                request = health_pb2.HealthCheckRequest(service=probe["grpc"].get("service", ""))
                try:
                    answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=probe["timeoutSeconds"])
                except grpc.RpcError:
                    return False
                return answer.status == health_pb2.HealthCheckResponse.SERVING
        port = next(port for port in container["ports"] if port["name"] == probe["httpGet"]["port"])
        try:
            url = f"http://{host(self.ip)}:{port['containerPort']}{probe['httpGet']['path']}"
            with urllib.request.urlopen(url, timeout=probe.get("timeoutSeconds", 1)) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        """Stops the container as kubelet does."""
        # The process is unshare, and its only child is process 1 of the container.
        child = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        os.kill(int(child), signal.SIGTERM)
        code = self.process.wait(timeout=self.spec["terminationGracePeriodSeconds"])
        assert code == 0, f"{self.name} ended with {code} on SIGTERM"


def wait_for(what, seconds, test):
    """Waits until a test succeeds."""
    deadline = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} seconds"
        time.sleep(0.2)


def cancel(submit):
    """Submits the job and cancels it; the Job must fail permanently, by the exit code of its rule."""
    rules = submit.manifests["Job", "exact2048-submit"]["spec"]["podFailurePolicy"]["rules"]
    for_good = next(rule["onExitCodes"]["values"] for rule in rules if rule["action"] == "FailJob")
    submit.run()
    container = submit.spec["containers"][0]
    command = {**container, "args": ['exact2048 cancel $CONNECT "$EXACT2048_JOB"']}
    wait_for("the job", 30, lambda: submit.start(command).wait(timeout=30) == 0)
    code = submit.process.wait(timeout=30)
    assert code in for_good, f"the Job ended with {code} when its job was cancelled"
    print("a cancelled job fails the Job")


def scale(coordinator, worker, job):
    """Removes a worker in mid-job as an autoscaler does, and adds it again."""
    members = lambda: metric(coordinator, "exact2048_workers")
    wait_for("both workers", 60, lambda: members() == 2)
    wait_for("work", 60, lambda: metric(coordinator, "exact2048_commits_total") > 0)
    worker.stop()
    wait_for("a worker less", 60, lambda: members() == 1)
    worker.run()
    wait_for("the worker again", 60, lambda: members() == 2)
    assert job.process.poll() is None, "the job ended before the worker was back: this tested nothing"
    print("a worker left and came back in mid-job")


def load(path):
    """The rendered manifests by kind and name."""
    manifests = {}
    for manifest in yaml.safe_load_all(path.read_text()):
        if manifest["kind"] == "Secret":
            manifest["decoded"] = {key: base64.b64decode(text).decode() for key, text in manifest["data"].items()}
        manifests[manifest["kind"], manifest["metadata"]["name"]] = manifest
    return manifests


def main(place):
    """Starts everything, waits until the job is solved, sends a query, and stops everything."""
    manifests = load(place.manifests)
    workloads = {
        name: next(manifests[kind, name] for kind in ("StatefulSet", "Deployment", "Job") if (kind, name) in manifests)
        for name in PODS
    }
    pods = {name: [Pod(manifests, workloads[name], ip, place) for ip in ips]
            for name, ips in addresses(place.family).items()}
    everyone = [pod for group in pods.values() for pod in group]
    try:
        submit = pods["exact2048-submit"][0]
        for name in ("exact2048-coordinator", "exact2048-worker"):
            for pod in pods[name]:
                pod.run()
                for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                    wait_for(f"{kind} of {pod.name}", 60, lambda: pod.healthy(kind))
            if name == "exact2048-coordinator":
                cancel(submit)
        submit.run()
        query = pods["exact2048-query"][0]
        query.run()
        scale(pods["exact2048-coordinator"][0], pods["exact2048-worker"][1], submit)
        code = submit.process.wait(timeout=300)
        assert code == 0, f"the Job ended with {code}"
        # Nothing was killed, so a failed epoch means that workers disturbed each other, for example in the shared store.
        failed = metric(pods["exact2048-coordinator"][0], "exact2048_epochs_failed_total")
        assert failed == 0, f"{failed:.0f} epochs failed, though no process was killed"
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            wait_for(f"{kind} of {query.name}", 60, lambda: query.healthy(kind))
        for pod in (pod for pod in everyone if pod is not submit):
            assert pod.healthy("livenessProbe"), f"{pod.name} does not pass its livenessProbe"
            with urllib.request.urlopen(f"http://{host(pod.ip)}:9464/metrics", timeout=5) as answer:
                assert answer.status == 200
        ask = [place.program, "query", "--server", f"{'https' if place.tls else 'http'}://exact2048-query:2048"]
        ask += ["--tls-ca", place.tls / "ca.crt"] if place.tls else ["--insecure"]
        token = manifests["Secret", secret(query.spec, "query-token")]["decoded"]
        # With tls/, the service counts as ready before it has seen that the run is solved.
        asked = [*ask, place.board]
        wait_for("an answer", 60, lambda: subprocess.run(asked, env=token, timeout=30).returncode == 0)
        print("the query service answers")
        for name in ("exact2048-query", "exact2048-worker", "exact2048-coordinator"):
            for pod in pods[name]:
                pod.stop()
        print("everything ended cleanly")
    except BaseException:
        for pod in everyone:
            tail = pathlib.Path(pod.log.name).read_text(errors="replace").splitlines()[-15:]
            print(f"--- {pod.name}", *tail, sep="\n", file=sys.stderr)
        raise
    finally:
        for pod in everyone:
            if pod.process and pod.process.poll() is None:
                pod.process.kill()


def secret(spec, name):
    """The name, including its hash, of a secret that a container reads."""
    references = [source["secretRef"]["name"] for source in spec["containers"][0]["envFrom"] if "secretRef" in source]
    return next(reference for reference in references if name in reference)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manifests", type=pathlib.Path, help="the manifests rendered by kustomize")
    parser.add_argument("--program", type=pathlib.Path, help="exact2048")
    parser.add_argument("--work", type=pathlib.Path, help="folder for the files of pods")
    parser.add_argument("--board", help="a state to query when the job is done")
    parser.add_argument("--tls", type=pathlib.Path, help="folder with tls.crt, tls.key and ca.crt")
    parser.add_argument("--family", choices=FAMILIES, default="IPv4", help="family of the pods' addresses")
    parser.add_argument("--hosts", action="store_true", help="only print the lines for /etc/hosts")
    options = parser.parse_args()
    if options.hosts:
        print(*names(options.family), sep="\n")
    else:
        make_network(options.family)
        main(options)
