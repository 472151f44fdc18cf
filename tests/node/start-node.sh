#!/bin/bash
# The first process of a node, in namespaces of the node's own: when it ends, all of the node ends.
# Its mounts hide the folders of this machine that kubelet, containerd and runc insist on.
# Variables: NAME, ADDRESS, POD_RANGES, FOLDER, PROGRAMS, IMAGES, GPUS, LABELS.
set -eu

if [ -n "${NETWORK-}" ]; then # else it shares the network of the control plane
  ip link set lo up
  until ip link set eth0 up 2>/dev/null; do sleep 0.05; done
  ip addr add "$ADDRESS/24" dev eth0
  # A Service has no route of its own: any will do until kube-proxy has chosen a pod.
  ip route add default dev eth0
fi
for other in $POD_RANGES; do # SUBNET=NODE
  ip route replace "${other%=*}" via "${other#*=}"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables

mount --make-rshared /
for folder in /var/lib/kubelet /var/lib/containerd /var/lib/cni /var/log/pods /var/log/containers /etc/cni/net.d; do
  mkdir -p "$FOLDER/disk$folder" "$folder"
  mount --bind "$FOLDER/disk$folder" "$folder"
done
for folder in /run/containerd /run/runc /run/netns; do
  mkdir -p "$folder"
  mount -t tmpfs node "$folder"
done
cp "$FOLDER/cni.conflist" /etc/cni/net.d/
hostname "$NAME"

all_run() { # else the node would wait for what has ended
  for pid in $(jobs -p); do kill -0 "$pid"; done
  sleep 0.1
}

PATH=$PROGRAMS:$PATH
containerd --config "$FOLDER/containerd.toml" >"$FOLDER/containerd.log" 2>&1 &
until ctr version >/dev/null 2>&1; do all_run; done
ctr --namespace k8s.io images import --local "$IMAGES"
kubelet --config "$FOLDER/kubelet.json" --kubeconfig "$FOLDER/kubelet.kubeconfig" --hostname-override "$NAME" \
  --node-ip "$ADDRESS" --node-labels "$LABELS" --cert-dir /var/lib/kubelet/pki >"$FOLDER/kubelet.log" 2>&1 &
kube-proxy --config "$FOLDER/kube-proxy.json" >"$FOLDER/kube-proxy.log" 2>&1 &
until [ -S /var/lib/kubelet/device-plugins/kubelet.sock ]; do all_run; done
"$DEVICE_PLUGIN" /var/lib/kubelet/device-plugins nvidia.com/gpu "$GPUS" >"$FOLDER/device-plugin.log" 2>&1 &
wait -n # the node ends with the first of them, and its log says why
