"""TensorRT-LLM checkpoint → OpenVINO graph. The only package outside the runtime that imports openvino."""
