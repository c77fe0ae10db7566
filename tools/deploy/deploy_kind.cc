// Names every kind of cluster once.
#include "tools/deploy/deploy_kind.h"

namespace hdps {

std::vector<DeployKind> DeployKinds() {
  return {JobSetKind(), JobsKind(), TrainJobKind(), MsJobKind(), KServeKind(), SlurmKind()};
}

}  // namespace hdps
