"""What a pod, a quantity, an edit and a finding are. Pure: standard library only, no I/O."""
