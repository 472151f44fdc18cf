"""What is wrong with an installation: the cluster is read once, checks make lines of what was read.

Other rooms use: certificates, checks, facts, legacy_counts, lines, other_admission, policies.
"""
