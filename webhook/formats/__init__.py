"""Migrates one file of any kind: runs the rules and changes only the bytes that must change.

Other rooms use: fences, file_objects, fractions, kustomization, kustomize, legacy_pods, mentions,
migrate, normal_form, opt_outs.
"""
