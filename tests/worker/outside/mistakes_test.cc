// Tests the refusal of what a caller of a table worker does wrong.
#include "tests/worker/outside/table_job.h"
