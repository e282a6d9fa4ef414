"""The models to train: small CNNs, a logistic regression, a Text-CNN, a tree over characters, or one's own."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedra.names import import_own, nearest, parameters_of
from fedra.pooling import MaxPoolReLU


def logistic(*, input_shape: Sequence[int], num_classes: int) -> nn.Module:
    """Multinomial logistic regression on the flattened input."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), num_classes))


def cnn28(
    *,
    input_shape: Sequence[int] = (1, 28, 28),
    num_classes: int = 10,
    channels: Sequence[int] = (16, 32),
    hidden: int = 128,
    dropout: float = 0.2,
) -> nn.Module:
    """CNN for 28x28 grey images: two 5x5 convolutions, each pooled by two, and a hidden layer with dropout."""
    return _cnn(input_shape, num_classes, channels, hidden, dropout)


def cnn32(
    *,
    input_shape: Sequence[int] = (3, 32, 32),
    num_classes: int = 10,
    channels: Sequence[int] = (16, 32),
    hidden: int = 128,
    dropout: float = 0.2,
) -> nn.Module:
    """CNN for 32x32 colour images: two 5x5 convolutions, each pooled by two, and a hidden layer with dropout."""
    return _cnn(input_shape, num_classes, channels, hidden, dropout)


def _cnn(
    input_shape: Sequence[int], num_classes: int, channels: Sequence[int], hidden: int, dropout: float
) -> nn.Module:
    if len(input_shape) != 3:
        raise ValueError(f"a CNN needs inputs of shape (channels, height, width), got {tuple(input_shape)}")
    if len(channels) != 2:
        raise ValueError(f"channels must be two numbers, one for each convolution, got {tuple(channels)}")
    height, width = (((side - 4) // 2 - 4) // 2 for side in input_shape[1:])
    if height < 1 or width < 1:
        raise ValueError(f"the CNN needs images of 16x16 or more, got {tuple(input_shape[1:])}; try model 'logistic'")
    return nn.Sequential(
        nn.Conv2d(input_shape[0], channels[0], 5),
        MaxPoolReLU(),
        nn.Conv2d(channels[0], channels[1], 5),
        MaxPoolReLU(),
        nn.Flatten(),
        nn.Linear(channels[1] * height * width, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, num_classes),
    )


class TextCNN(nn.Module):
    """Convolutions of several widths over word embeddings, each max-pooled over time (Kim, EMNLP 2014)."""

    def __init__(self, embedding: nn.Embedding, widths: Sequence[int], filters: int, dropout: float, num_classes: int):
        """Take the embedding as it is, frozen or not."""
        super().__init__()
        self.embedding = embedding
        # Two-dimensional with a height of one: embeddings lie channels last, for which torch's Conv1d is slower.
        self.convolutions = nn.ModuleList(nn.Conv2d(embedding.embedding_dim, filters, (1, width)) for width in widths)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(filters * len(widths), num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the class scores of token ids of shape (samples, length)."""
        words = self.embedding(tokens).transpose(1, 2).unsqueeze(2)
        pooled = [F.adaptive_max_pool2d(convolution(words), 1) for convolution in self.convolutions]
        features = torch.cat(pooled, dim=1).flatten(1).relu()
        return self.classifier(self.dropout(features))  # type: ignore[no-any-return]


def text_cnn(
    *,
    input_shape: Sequence[int],
    num_classes: int,
    embeddings: Any = None,
    num_words: int | None = None,
    embedding_dim: int = 100,
    freeze: bool = True,
    widths: Sequence[int] = (3, 4, 5),
    filters: int = 100,
    dropout: float = 0.2,
) -> nn.Module:
    """Text-CNN on token ids, with `embeddings`, one row per word, or with random vectors for `num_words` words."""
    if len(input_shape) != 1 or input_shape[0] < max(widths):
        raise ValueError(f"the Text-CNN needs inputs of shape (length,), length >= {max(widths)}, got {input_shape}")
    if embeddings is not None:
        vectors = torch.as_tensor(embeddings, dtype=torch.float32).clone()
    elif num_words is not None:
        vectors = torch.randn(num_words, embedding_dim) / math.sqrt(embedding_dim)
    else:
        raise ValueError("the Text-CNN needs embeddings=(a matrix, one row per word) or num_words=(vocabulary size)")
    embedding = nn.Embedding.from_pretrained(vectors, freeze=freeze)  # type: ignore[no-untyped-call]
    return TextCNN(embedding, widths, filters, dropout, num_classes)


class CharTree(nn.Module):
    """Characters joined by neighbours, and those by neighbours again, until one vector is left of them all.

    The classifier sees that vector and the last few characters themselves, from which most can be told at once. Each
    level is a convolution whose stride is its width, as a linear layer over groups of neighbours: what it costs is what
    matrix products cost, and so do the gradients of single clients.
    """

    def __init__(
        self, num_words: int, widths: Sequence[int], embedding_dim: int, hidden: int, last: int, num_classes: int
    ):
        super().__init__()
        self.widths = tuple(widths)
        self.last = last
        self.embedding = nn.Embedding(num_words, embedding_dim)
        inputs = [embedding_dim, *[hidden] * (len(self.widths) - 1)]
        self.levels = nn.ModuleList(
            nn.Linear(size * width, hidden) for size, width in zip(inputs, self.widths, strict=True)
        )
        self.classifier = nn.Linear(hidden + last * embedding_dim, num_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the class scores of token ids of shape (samples, length)."""
        features = characters = self.embedding(tokens)
        for width, level in zip(self.widths, self.levels, strict=True):
            features = level(features.reshape(len(features), features.shape[1] // width, -1)).relu()
        ends = characters[:, characters.shape[1] - self.last :]
        return self.classifier(torch.cat([features.flatten(1), ends.flatten(1)], dim=1))  # type: ignore[no-any-return]


def char_tree(
    *,
    input_shape: Sequence[int],
    num_classes: int,
    num_words: int | None = None,
    widths: Sequence[int] = (5, 4, 4),
    embedding_dim: int = 16,
    hidden: int = 96,
    last: int = 8,
) -> nn.Module:
    """Tree over characters, `num_words` of them; None: those that are predicted, and one for padding."""
    if len(input_shape) != 1 or math.prod(widths) != input_shape[0]:
        raise ValueError(
            f"the tree over characters needs inputs of shape (length,), length the product of widths {tuple(widths)}, "
            f"got {tuple(input_shape)}; give other widths"
        )
    if not 0 <= last <= input_shape[0]:
        raise ValueError(f"last={last} characters of {input_shape[0]}; give 0 to {input_shape[0]}")
    words = num_classes + 1 if num_words is None else num_words
    return CharTree(words, widths, embedding_dim, hidden, last, num_classes)


MODELS: dict[str, Callable[..., nn.Module]] = {
    "char-tree": char_tree,
    "cnn28": cnn28,
    "cnn32": cnn32,
    "logistic": logistic,
    "text-cnn": text_cnn,
}


def build_model(
    name: str,
    *,
    input_shape: Sequence[int],
    num_classes: int,
    seed: int,
    embeddings: Any = None,
    num_words: int | None = None,
    **params: Any,
) -> nn.Module:
    """Build a model of the registry, or of `module:function`, initialised from the seed alone.

    The builder is given those of input_shape, num_classes, embeddings and num_words that it accepts, and `params`.
    """
    builder = _find_builder(name)
    accepted = inspect.signature(builder).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
    facts = {
        "input_shape": tuple(input_shape),
        "num_classes": num_classes,
        "embeddings": embeddings,
        "num_words": num_words,
    }
    valid = [key for key in accepted if key not in facts]
    for key in params:
        if key not in valid and not open_ended:
            raise ValueError(f"model {name!r} has no parameter {key!r}{nearest(key, valid)}")
    known = {key: value for key, value in facts.items() if key in accepted}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        model = builder(**known, **params)
    if not isinstance(model, nn.Module):
        raise TypeError(f"model {name!r} must return a torch.nn.Module, got {type(model).__name__}")
    return model


def trainable_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that are trained, in the order of the flat vector."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def parameter_vector(model: nn.Module) -> Tensor:
    """Return a copy of the trainable parameters as one flat vector."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in trainable_parameters(model)])


def load_parameter_vector(model: nn.Module, vector: Tensor) -> None:
    """Copy a flat vector into the trainable parameters, cast to their dtype."""
    parameters = trainable_parameters(model)
    sizes = [parameter.numel() for parameter in parameters]
    if vector.shape != (sum(sizes),):
        raise ValueError(
            f"the model has {sum(sizes)} trainable parameters, got a vector of shape {tuple(vector.shape)}"
        )
    with torch.no_grad():
        for parameter, values in zip(parameters, torch.split(vector, sizes), strict=True):
            parameter.copy_(values.view_as(parameter))


def _find_builder(name: str) -> Callable[..., Any]:
    if name in MODELS:
        return MODELS[name]
    if ":" not in name:
        raise ValueError(f"unknown model {name!r}{nearest(name, MODELS)}, or module:function of your own")
    builder = import_own(name, "model")
    if not _builds_a_model(builder):
        raise TypeError(
            f"model {name!r} must be a function or class that makes a torch.nn.Module, got {builder!r}; give a subclass"
            " of torch.nn.Module, or a function with a parameter input_shape or num_classes"
        )
    return builder  # type: ignore[no-any-return]


def _builds_a_model(found: Any) -> bool:
    """Whether it looks like a model's builder, which is all that can be known before it is called."""
    if isinstance(found, type):
        return issubclass(found, nn.Module)
    return bool({"input_shape", "num_classes"} & parameters_of(found).keys())
