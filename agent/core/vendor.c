/* SPDX-License-Identifier: MIT */
#include "agent/core/vendor.h"

const char* vendor_operation_describe(VendorOperation operation) {
        static const char *const table[_VENDOR_OPERATION_MAX] = {
                [VENDOR_PROBE] = "a probe",
                [VENDOR_RESET] = "a reset",
                [VENDOR_HOLDERS] = "a search for processes",
                [VENDOR_LEFTOVERS] = "ending an old tenant's processes",
                [VENDOR_QUIESCE] = "stopping the monitoring",
                [VENDOR_RESUME] = "starting the monitoring again",
                [VENDOR_CHECKS] = "the site's checks",
                [VENDOR_TENANTS] = "a look for tenants",
        };

        return table[operation];
}
