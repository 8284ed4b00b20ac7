"""Makes softmax_triton.ptx and softmax_numba.ptx, beside this file. Needs no GPU:

    pip install triton==3.9.0 numba==0.68.1 "numba-cuda[cu13]==0.30.4" nvidia-nvvm==13.0.88
    python kernels/softmax_ptx.py

Each file has one entry per number of columns. All kernels give one block to each row and keep the row in registers.
"""

import math
import os
import pathlib
import re

# No paths of this machine in the PTX.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

import triton
import triton.language as tl
from numba import cuda, float32, types
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# Columns, and threads per block. Eight columns per thread, as `softmax.cu` has them.
SHAPES = {1024: 128, 4096: 512}
HERE = pathlib.Path(__file__).parent


@triton.jit
def softmax(out_ptr, in_ptr, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, COLUMNS)
    x = tl.load(in_ptr + row * COLUMNS + columns)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * COLUMNS + columns, e / tl.sum(e, axis=0))


def of_triton(columns, threads):
    source = ASTSource(
        softmax,
        signature={"out_ptr": "*fp32", "in_ptr": "*fp32", "COLUMNS": "constexpr"},
        constexprs={(2,): columns},
        # Both addresses are multiples of 16 bytes.
        attrs={(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]},
    )
    # PTX of an old version, so that old drivers load it too.
    options = {"num_warps": threads // 32, "ptx_version": 80}
    kernel = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
    print("triton", columns, "dynamic shared memory:", kernel.metadata.shared)
    return kernel.asm["ptx"].replace("softmax", f"softmax_{columns}")


def of_numba(columns, threads):
    warps, each = threads // 32, columns // threads

    def softmax(out, values):
        of_warps = cuda.shared.array(warps, float32)
        mine = cuda.local.array(each, float32)
        thread, row = cuda.threadIdx.x, cuda.blockIdx.x * columns
        lane, warp = thread % 32, thread // 32
        most = float32(-float("inf"))
        for i in range(each):
            mine[i] = values[row + i * threads + thread]
            most = max(most, mine[i])
        for distance in (16, 8, 4, 2, 1):
            most = max(most, cuda.shfl_xor_sync(0xFFFFFFFF, most, distance))
        if lane == 0:
            of_warps[warp] = most
        cuda.syncthreads()
        for i in range(warps):
            most = max(most, of_warps[i])
        cuda.syncthreads()
        total = float32(0)
        for i in range(each):
            mine[i] = math.exp(mine[i] - most)
            total += mine[i]
        for distance in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, distance)
        if lane == 0:
            of_warps[warp] = total
        cuda.syncthreads()
        total = float32(0)
        for i in range(warps):
            total += of_warps[i]
        for i in range(each):
            out[row + i * threads + thread] = mine[i] / total

    array = types.Array(float32, 1, "C")
    ptx, _ = cuda.compile_ptx(softmax, (array, array), cc=(8, 0), fastmath=False)
    name = ptx.split(".visible .entry ")[1].split("(")[0]
    # Numba's record of the function, of which every entry needs its own.
    ptx = re.sub(r"_ZN08NumbaEnv\w+", f"environment_{columns}", ptx)
    return ptx.replace(name, f"softmax_{columns}")


def joined(texts):
    """The entries of all texts under the header of the first."""
    begin = texts[0].index(".version")
    head = texts[0][begin:].split(".address_size 64")[0] + ".address_size 64\n"
    bodies = [text.split(".address_size 64")[1] for text in texts]
    shared = ".extern .shared .align 16 .b8 global_smem[];\n"
    return head + bodies[0] + "".join(body.replace(shared, "") for body in bodies[1:])


if __name__ == "__main__":
    for name, compiled in [("triton", of_triton), ("numba", of_numba)]:
        texts = [compiled(columns, threads) for columns, threads in SHAPES.items()]
        (HERE / f"softmax_{name}.ptx").write_text(joined(texts))
