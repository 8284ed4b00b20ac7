import time

import numpy as np


def softmax(input, rows, columns, scale=1.0):
    x = input.reshape(rows, columns).astype(np.float64) * scale
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def wrong(input):
    return input * 0.5


def endless(input):
    time.sleep(600)


def reading(input):
    # This file of the project is not hashed.
    open("kernels/softmax.cu").close()
    return input


def silent(out):
    # Ends without a result.
    import os

    os._exit(0)
