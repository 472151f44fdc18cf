"""The rules over one file of each kind, changing only the bytes that must change.

Other rooms use: kustomization, kustomize, migrate, together.
"""
