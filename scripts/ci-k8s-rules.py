#!/usr/bin/env python3
"""Checks rules for rendered manifests that schemas do not cover: consistent numbers, and machines that can be drained.

scripts/ci-k8s.sh calls it. Every rule is also tried on manifests with a deliberate mistake that it must find.
"""

import copy
import pathlib
import re
import sys

import yaml

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def size(text):
    """Bytes of a size as Kubernetes (16Gi) or the program (16GiB) writes it."""
    number, unit = re.fullmatch(r"([0-9.]+)([KMGT]?i?)B?", str(text)).groups()
    return float(number) * UNITS[unit]


def option(container, name):
    """The value of an option in the arguments of a container or in its shell script; None if it is absent."""
    text = " ".join(container.get("command", []) + container.get("args", []))
    found = re.search(rf"--{name}[= ]([^\s]+)", text)
    return found and found[1]


def workloads(manifests):
    """The manifests that make pods, with the specifications of the pods."""
    for manifest in manifests:
        if manifest["kind"] in ("StatefulSet", "Deployment", "Job"):
            yield manifest, manifest["spec"]["template"]["spec"]


def caches_fit(manifests):
    """A cache must fit its volume, or Kubernetes evicts the pod, and then its successor."""
    for manifest, pod in workloads(manifests):
        volumes = {volume["name"]: volume["emptyDir"] for volume in pod.get("volumes", []) if "emptyDir" in volume}
        for container in pod.get("initContainers", []) + pod["containers"]:
            name = f"{manifest['metadata']['name']}/{container['name']}"
            for mount in container.get("volumeMounts", []):
                if mount["name"] not in volumes:
                    continue
                limit = volumes[mount["name"]].get("sizeLimit")
                if not limit:
                    yield f"{name}: the volume {mount['name']} has no sizeLimit"
                    continue
                if option(container, "cache") != mount["mountPath"]:
                    yield f"{name}: --cache is not the volume {mount['name']} at {mount['mountPath']}"
                cache = option(container, "cache-size")
                if not cache:
                    yield f"{name}: no --cache-size, whose default is larger than the volume of {limit}"
                elif size(cache) > size(limit) * 7 / 8:
                    yield f"{name}: --cache-size={cache} leaves no room in the volume of {limit}"
        wanted = sum(size(volume["sizeLimit"]) for volume in volumes.values() if volume.get("sizeLimit"))
        promised = size(pod["containers"][0]["resources"]["requests"].get("ephemeral-storage", 0))
        if promised < wanted:
            yield f"{manifest['metadata']['name']}: volumes may grow beyond the ephemeral-storage that it requests"


def memory_fits(manifests):
    """A program's memory must stay below the container's limit, or the program is killed."""
    for manifest, pod in workloads(manifests):
        for container in pod["containers"]:
            memory, limit = option(container, "memory"), container["resources"]["limits"]["memory"]
            if memory and size(memory) > size(limit) * 7 / 8:
                yield f"{manifest['metadata']['name']}: --memory={memory} is more than 7/8 of the limit of {limit}"


def ends_in_time(manifests):
    """A program must end before Kubernetes stops waiting and kills it."""
    for manifest, pod in workloads(manifests):
        container = pod["containers"][0]
        grace = option(container, "grace")
        if grace is None:
            continue
        before = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
        needed = int(grace) + int(before[-1])
        if needed >= pod["terminationGracePeriodSeconds"]:
            yield f"{manifest['metadata']['name']}: needs {needed} seconds to end, and is killed before that"


def can_be_evicted(budget, replicas, ready):
    """Whether a pod may be evicted, given the numbers of all and of ready pods; an unready one if there is any.

    The rule is that of the API server: docs/tasks/run-application/configure-pdb of Kubernetes, "Unhealthy Pod Eviction
    Policy".
    """
    spec = budget["spec"]
    if ready < replicas and spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = spec["minAvailable"] if "minAvailable" in spec else replicas - spec["maxUnavailable"]
    if ready < replicas and ready >= desired > 0:
        return True
    return ready - desired >= 1


def machines_can_be_drained(manifests):
    """Every budget must allow the eviction of a pod when all are ready, and when none is."""
    for budget in (manifest for manifest in manifests if manifest["kind"] == "PodDisruptionBudget"):
        labels = budget["spec"]["selector"]["matchLabels"]
        matched = [manifest for manifest, _ in workloads(manifests)
                   if labels.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()]
        if not matched:
            yield f"the budget {budget['metadata']['name']} matches no pod"
        for manifest in matched:
            replicas = manifest["spec"]["replicas"]
            for ready in (replicas, 0):
                if not can_be_evicted(budget, replicas, ready):
                    yield f"{manifest['metadata']['name']}: with {ready} of {replicas} pods ready no machine can be drained"


def addresses_of_both_kinds(manifests):
    """No port may follow an address, which may have colons, and the listening address must be a setting."""
    for manifest, pod in workloads(manifests):
        for container in pod["containers"]:
            text = " ".join(container.get("command", []) + container.get("args", []))
            if re.search(r"\$\(POD_IP\):", text):
                yield f"{manifest['metadata']['name']}: a port follows $(POD_IP), which may be an IPv6 address"
            if re.search(r"listen[= ](0\.0\.0\.0|\[::\])", text):
                yield f"{manifest['metadata']['name']}: listens on addresses of one kind"


RULES = [caches_fit, memory_fits, ends_in_time, machines_can_be_drained, addresses_of_both_kinds]


def find(manifests, kind, name):
    """The manifest of a kind and name."""
    return next(one for one in manifests if one["kind"] == kind and one["metadata"]["name"] == f"exact2048-{name}")


def container(manifests, kind, name):
    """The container of a manifest."""
    return find(manifests, kind, name)["spec"]["template"]["spec"]["containers"][0]


def spoil(manifests):
    """Copies of the manifests, each with one mistake, and the rule that must find it."""
    def spoilt(rule, change):
        copied = copy.deepcopy(manifests)
        change(copied)
        return rule, copied

    def without(kind, name, option_name):
        def change(copied):
            one = container(copied, kind, name)
            one["args"] = [arg for arg in one["args"] if not arg.startswith(f"--{option_name}=")]
        return change

    def with_argument(kind, name, argument):
        def change(copied):
            without(kind, name, argument[2:].split("=")[0])(copied)
            container(copied, kind, name)["args"].append(argument)
        return change

    def with_policy(policy):
        def change(copied):
            find(copied, "PodDisruptionBudget", "query")["spec"]["unhealthyPodEvictionPolicy"] = policy
        return change

    def with_all_needed(copied):
        find(copied, "PodDisruptionBudget", "query")["spec"]["minAvailable"] = 2

    yield spoilt(caches_fit, without("StatefulSet", "coordinator", "cache-size"))
    yield spoilt(caches_fit, with_argument("StatefulSet", "coordinator", "--cache-size=32GiB"))
    yield spoilt(memory_fits, with_argument("Deployment", "worker", "--memory=1TiB"))
    yield spoilt(ends_in_time, with_argument("Deployment", "query", "--grace=45"))
    yield spoilt(machines_can_be_drained, with_policy("IfHealthyBudget"))
    yield spoilt(machines_can_be_drained, with_all_needed)
    yield spoilt(addresses_of_both_kinds, with_argument("Deployment", "worker", "--advertise=$(POD_IP):2048"))
    yield spoilt(addresses_of_both_kinds, with_argument("Deployment", "query", "--metrics-listen=0.0.0.0:9464"))


def main(path):
    """Prints the problems; the exit code is 1 if there are any."""
    manifests = [manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest]
    found = [problem for rule in RULES for problem in rule(manifests)]
    if found:
        sys.exit("\n".join([f"error: {path.name}:", *found]))
    for rule, spoilt in spoil(manifests):
        if not list(rule(spoilt)):
            sys.exit(f"error: the rule {rule.__name__} does not find a deliberate mistake in {path.name}")
    print(f"{path.name} satisfies {len(RULES)} rules")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
