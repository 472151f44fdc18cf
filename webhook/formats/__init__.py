"""Migrates one file of any kind: runs the rules and changes only the bytes that must change.

Other rooms use: kustomization, kustomize, legacy_pods, migrate.
"""
