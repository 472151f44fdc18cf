"""What the cluster's nodes have, and whether a pod can ever run on one of them. Pure: no I/O."""
