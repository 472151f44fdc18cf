"""From the bytes of an AdmissionReview to the bytes of the answer.

Other rooms use: app, decide, endpoint, outcome, request_pods, review, workloads.
"""
