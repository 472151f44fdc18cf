"""What the cluster's nodes have, and whether a pod can ever run on one of them. Pure: no I/O.

Other rooms use: daemonsets, fit, gpu_holders, legacy_selector, model_terms, model_words, models,
node_index, node_labels, node_selection, node_sets, nodes, requests, runtime_class, whole_gpus,
why_not.
"""
