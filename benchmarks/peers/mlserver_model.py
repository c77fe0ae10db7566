"""A model of MLServer that runs a model.onnx by onnxruntime, as MLServer's documentation shows a runtime of one's own."""
import numpy
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse, ResponseOutput
from onnx_scoring import session_of


class OnnxModel(MLModel):
    async def load(self):
        self.session = session_of(self.settings.parameters.uri)
        return True

    async def predict(self, payload):
        inputs = {one.name: NumpyCodec.decode_input(one) for one in payload.inputs}
        probability, = self.session.run(["probability"], inputs)
        return InferenceResponse(model_name=self.name, outputs=[ResponseOutput(
            name="probability", shape=list(probability.shape), datatype="FP32",
            data=numpy.ravel(probability).tolist())])
