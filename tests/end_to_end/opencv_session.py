"""Runs the dense part of exported models by OpenCV and NumPy, in an interpreter that has both: FOLDER... -> a line of JSON each.

A FOLDER holds what onnx_session.py says. A model that OpenCV does not read gets its reason in place of figures.
"""
import json
import pathlib
import re
import sys

import cv2
import numpy as np

import onnx_session


def computed(folder):
    """The scores of the rows to check with, from pooled rows that are looked up here."""
    check, _ = onnx_session.safetensors(folder / "outside" / "check.safetensors")
    tensors, metadata = onnx_session.safetensors(folder / "tables" / "model.safetensors")
    job = json.loads(metadata["job"])
    features = list(json.loads(metadata["keys"]))
    net = cv2.dnn.readNetFromONNX(str(folder / "outside" / "model.onnx"))
    for name, values in onnx_session.outside_inputs(onnx_session.Tables(tensors, job), job, check, features).items():
        net.setInput(values.astype(np.float32), name)
    return net.forward("logit"), check


def compare(folder):
    found = {"name": folder.name, "opencv": cv2.__version__}
    try:
        scores, check = computed(folder)
    except cv2.error as error:
        node = re.search(r"Node \[(\w+)@", str(error))
        return {**found, "refused": node[1] if node else str(error)}
    return {**found, "rows": len(scores), "apart": onnx_session.apart(scores, check)}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(compare(pathlib.Path(argument))), flush=True)
