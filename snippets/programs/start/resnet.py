"""A residual network, with batch norm."""

from flax import nnx


class NnxConvNorm(nnx.Module):
    """A 3×3 convolution without bias and its batch norm, on NHWC images."""

    def __init__(self, inputs, outputs, stride=1, *, rngs):
        self.conv = nnx.Conv(
            inputs,
            outputs,
            (3, 3),
            strides=stride,
            padding=((1, 1), (1, 1)),
            use_bias=False,
            rngs=rngs,
        )
        self.norm = nnx.BatchNorm(
            outputs, momentum=0.9, epsilon=1e-5, rngs=rngs
        )

    def __call__(self, x):
        """Return the normalized images."""
        return self.norm(self.conv(x))


class NnxResidual(nnx.Module):
    """Two convolutions, added to what enters them."""

    def __init__(self, inputs, outputs, stride=1, *, rngs):
        self.first = NnxConvNorm(inputs, outputs, stride, rngs=rngs)
        self.second = NnxConvNorm(outputs, outputs, rngs=rngs)
        changed = inputs != outputs or stride > 1
        self.skip = (
            NnxConvNorm(inputs, outputs, stride, rngs=rngs)
            if changed
            else None
        )

    def __call__(self, x):
        """Return images (n, height / stride, width / stride, outputs)."""
        y = self.second(nnx.relu(self.first(x)))
        return nnx.relu(y + (self.skip(x) if self.skip else x))


class NnxResNet(nnx.Module):
    """Images (n, 64) to logits (n, 10)."""

    def __init__(self, width=8, *, rngs):
        self.first = NnxConvNorm(1, width, rngs=rngs)
        self.blocks = nnx.List(
            [
                NnxResidual(width, width, rngs=rngs),
                NnxResidual(width, 2 * width, stride=2, rngs=rngs),
            ]
        )
        self.out = nnx.Linear(2 * width, 10, rngs=rngs)

    def __call__(self, x):
        """Return the logits; while training, update the statistics."""
        x = nnx.relu(self.first(x.reshape(-1, 8, 8, 1)))
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(axis=(1, 2)))


def network(rngs):
    """Return the model: images (n, 64) to logits (n, 10)."""
    return NnxResNet(width=8, rngs=rngs)
