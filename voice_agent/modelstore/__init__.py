"""Model weights on disk: what is needed, whether it is there and whole, and how to get it."""

from voice_agent.modelstore.disk import FileState, FileStatus
from voice_agent.modelstore.manifest import Manifest, Model, ModelFile, load_manifest
from voice_agent.modelstore.progress import Phase, Progress
from voice_agent.modelstore.store import SCRIPTED, ModelPaths, ModelStore, model_root

__all__ = [
    "SCRIPTED",
    "FileState",
    "FileStatus",
    "Manifest",
    "Model",
    "ModelFile",
    "ModelPaths",
    "ModelStore",
    "Phase",
    "Progress",
    "load_manifest",
    "model_root",
]
