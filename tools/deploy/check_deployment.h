// Checks a deployment as a whole before anything is printed.
#pragma once

#include "common/base/status.h"
#include "tools/deploy/deploy_kind.h"

namespace hdps {

// Errors: kInvalidArgument names the flag, the value, and what would be right.
Status CheckDeployment(const DeployKind& kind, const Deployment& deployment);

}  // namespace hdps
