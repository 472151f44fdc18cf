"""The rules over one file of each kind, changing only the bytes that must change.

Other rooms use: kustomization, kustomize, legacy_pods, migrate.
"""
