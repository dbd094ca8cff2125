"""Four small models on real data, compared with CPU: run with `python -m torch_neuronx.demo`."""
