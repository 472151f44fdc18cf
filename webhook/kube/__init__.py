"""Kubernetes API types: what a pod, a quantity, a label and a toleration are. Pure: no I/O.

Other rooms use: all.
"""
