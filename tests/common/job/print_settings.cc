// Prints the tables of docs/job_file.md; scripts/dev/job_file_docs.sh puts them there.
#include <cstdio>

#include "common/job/text/job_sections.h"

int main() { std::fputs(hdps::PrintSettingReference(hdps::JobSection()).c_str(), stdout); }
