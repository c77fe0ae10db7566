// Refuses what Kubernetes would refuse: names, images, quantities, paths.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"

namespace hdps {

// Each error is kInvalidArgument and names `flag`, the value, and what would be right.

// A name of 1 to 63 small letters, digits and dashes that begins with a letter, as services have
// it, and ends with none of the dashes (RFC 1035, which is stricter than RFC 1123).
Status CheckObjectName(const std::string& flag, const std::string& name);
// Names of this kind with dots between them, up to 253 characters, which may begin with a digit
// (RFC 1123): a Secret or a claim.
Status CheckSubdomainName(const std::string& flag, const std::string& name);
// An image as [HOST[:PORT]/]PATH[:TAG][@sha256:DIGEST].
Status CheckImage(const std::string& flag, const std::string& image);
// A path within a volume: no "..", no leading '/', and only characters that need no quoting.
Status CheckVolumePath(const std::string& flag, const std::string& path);
// A number of bytes as Kubernetes writes it: 512Mi, 8Gi, 2G.
Result<uint64_t> ReadQuantity(const std::string& flag, const std::string& text);

// Returns the nearest name that CheckObjectName() takes: "Wide_Deep" becomes "wide-deep". Empty if
// there is no letter in it.
std::string ObjectNameOf(const std::string& text);

}  // namespace hdps
