"""What the cluster has. Static for now: what `kubectl get nodes -o yaml` prints."""
