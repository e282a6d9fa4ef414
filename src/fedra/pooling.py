"""Max-pooling by two and ReLU as one layer, which reads and writes memory once where torch does several times."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MaxPoolReLU(nn.Module):
    """`nn.ReLU` after `nn.MaxPool2d(2)`: the same values and the same gradients, bit for bit."""

    def forward(self, images: Tensor) -> Tensor:
        """Return images of half the height and width."""
        if _channels_lie_together(images):
            return _MaxPoolReLU.apply(images)  # type: ignore[no-any-return,no-untyped-call]
        return F.max_pool2d(images, 2).relu()


def _channels_lie_together(images: Tensor) -> bool:
    known = images.device.type == "cpu" and images.dtype in (torch.float32, torch.float64)
    if not known or images.dim() != 4 or min(images.shape[2:]) < 2:
        return False
    # Where there is one channel, torch goes by the stride.
    return images.is_contiguous(memory_format=torch.channels_last) and images.stride(1) == 1


def _array(images: Tensor) -> Any:
    return images.detach().permute(0, 2, 3, 1).numpy()


class _MaxPoolReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor) -> Tensor:
        from fedra.kernels.pooling_compiled import pool_images

        size, channels, height, width = images.shape
        pooled = torch.empty(
            (size, channels, height // 2, width // 2), dtype=images.dtype, memory_format=torch.channels_last
        )
        out = _array(pooled)
        ctx.shape = images.shape
        ctx.winners = np.empty(out.shape, dtype=np.int8)
        pool_images(_array(images), out, ctx.winners)
        return pooled

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grads: Tensor) -> Tensor:
        from fedra.kernels.pooling_compiled import spread_windows

        spread = torch.empty(ctx.shape, dtype=grads.dtype, memory_format=torch.channels_last)
        out = _array(spread)
        # What an odd height or width leaves over is in no window.
        out[:, 2 * grads.shape[2] :] = 0
        out[:, :, 2 * grads.shape[3] :] = 0
        spread_windows(_array(grads.contiguous(memory_format=torch.channels_last)), ctx.winners, out)
        return spread
