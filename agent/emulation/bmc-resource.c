/* SPDX-License-Identifier: MIT */
#include "agent/emulation/bmc-resource.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/text.h"
#include "agent/driver/nvml-abi.h"
#include "cli/json.h"

#define SYSTEM_ID  "HGX_Baseboard_0"
#define SYSTEMS    BMC_ROOT "/Systems"
#define SYSTEM     SYSTEMS "/" SYSTEM_ID
#define PROCESSORS SYSTEM "/Processors"
#define GPU_PREFIX PROCESSORS "/GPU_"

static json_object* link_new(const char *uri) {
        CLEANUP(json_put_ptr) json_object *link = json_object_new_object();

        return json_set(link, "@odata.id", json_string(uri)) >= 0 ? take_ptr(&link) : NULL;
}

/* What every resource begins with. */
static int resource_new(
                const char *uri, const char *type, const char *id, const char *name, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *resource = json_object_new_object();
        int r;

        r = json_set(resource, "@odata.id", json_string(uri));
        if (r >= 0)
                r = json_set(resource, "@odata.type", json_string(type));
        if (r >= 0 && id)
                r = json_set(resource, "Id", json_string(id));
        if (r >= 0)
                r = json_set(resource, "Name", json_string(name));
        if (r < 0)
                return r;

        *ret = take_ptr(&resource);
        return 0;
}

static int service_list(const Tray *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *versions = json_object_new_object();
        int r;

        r = json_set(versions, "v1", json_string(BMC_ROOT "/"));
        if (r >= 0)
                *ret = take_ptr(&versions);
        return r;
}

static int service_root(const Tray *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *root = NULL;
        int r;

        r = resource_new(BMC_ROOT, "#ServiceRoot.v1_15_0.ServiceRoot", "RootService", "Root Service", &root);
        if (r >= 0)
                r = json_set(root, "RedfishVersion", json_string("1.17.0"));
        if (r >= 0)
                r = json_set(root, "Vendor", json_string("gpuagent"));
        if (r >= 0)
                r = json_set(root, "Systems", link_new(SYSTEMS));
        if (r >= 0)
                *ret = take_ptr(&root);
        return r;
}

static int member_add(json_object *members, const char *uri) {
        json_object *link = link_new(uri);

        if (link && json_object_array_add(members, link) >= 0)
                return 0;
        (void) json_object_put(link);
        return -ENOMEM;
}

/* Gives a collection its members, which are taken over in any case. */
static int members_set(json_object *collection, json_object *members) {
        size_t n = members ? json_object_array_length(members) : 0;
        int r;

        r = json_set(collection, "Members", members);
        return r < 0 ? r : json_set(collection, "Members@odata.count", json_object_new_uint64(n));
}

static int systems(const Tray *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *collection = NULL;
        CLEANUP(json_put_ptr) json_object *members = json_object_new_array();
        int r;

        r = resource_new(SYSTEMS, "#ComputerSystemCollection.ComputerSystemCollection", NULL,
                        "Computer System Collection", &collection);
        if (r >= 0)
                r = members ? member_add(members, SYSTEM) : -ENOMEM;
        if (r >= 0)
                r = members_set(collection, take_ptr(&members));
        if (r >= 0)
                *ret = take_ptr(&collection);
        return r;
}

static int baseboard(const Tray *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *board = NULL;
        int r;

        r = resource_new(SYSTEM, "#ComputerSystem.v1_22_0.ComputerSystem", SYSTEM_ID, tray->header->name,
                        &board);
        if (r >= 0)
                r = json_set(board, "SystemType", json_string("Physical"));
        if (r >= 0)
                r = json_set(board, "Manufacturer", json_string("NVIDIA"));
        if (r >= 0)
                r = json_set(board, "Processors", link_new(PROCESSORS));
        if (r >= 0)
                *ret = take_ptr(&board);
        return r;
}

static int processors(const Tray *tray, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *collection = NULL;
        CLEANUP(json_put_ptr) json_object *members = json_object_new_array();
        int r;

        r = resource_new(PROCESSORS, "#ProcessorCollection.ProcessorCollection", NULL,
                        "Processor Collection", &collection);
        if (r >= 0 && !members)
                r = -ENOMEM;
        for (uint32_t i = 0; r >= 0 && i < tray->header->n_gpus; i++) {
                char uri[sizeof GPU_PREFIX + 10];

                (void) snprintf(uri, sizeof uri, GPU_PREFIX "%u", i);
                r = member_add(members, uri);
        }
        if (r >= 0)
                r = members_set(collection, take_ptr(&members));
        if (r >= 0)
                *ret = take_ptr(&collection);
        return r;
}

/* As the driver has it, a cluster is unknown until the fabric has settled. */
static json_object* fabric_clique(const Tray *tray, const TrayGpu *gpu, usec_t now) {
        CLEANUP(json_put_ptr) json_object *clique = json_object_new_object();
        const uint8_t *c = tray->header->cluster_uuid;
        bool settled = tray_gpu_fabric_state(tray->header, gpu, now) == NVML_FABRIC_COMPLETED;
        char cluster[37];
        int r;

        (void) snprintf(cluster, sizeof cluster,
                        "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", c[0], c[1],
                        c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14],
                        c[15]);
        r = json_set(clique, "CliqueId", settled ? json_object_new_uint64(gpu->clique) : NULL);
        if (r >= 0)
                r = json_set(clique, "ClusterUUID", settled ? json_string(cluster) : NULL);
        return r >= 0 ? take_ptr(&clique) : NULL;
}

static json_object* vendor_part(const Tray *tray, const TrayGpu *gpu, usec_t now) {
        CLEANUP(json_put_ptr) json_object *oem = json_object_new_object();
        CLEANUP(json_put_ptr) json_object *vendor = json_object_new_object();
        int r;

        r = json_set(vendor, "@odata.type", json_string("#NvidiaProcessor.v1_4_0.NvidiaGPU"));
        if (r >= 0)
                r = json_set(vendor, "MIGModeEnabled", json_object_new_boolean(gpu->mig));
        if (r >= 0 && tray->header->model.cluster)
                r = json_set(vendor, "FabricClique", fabric_clique(tray, gpu, now));
        if (r >= 0)
                r = json_set(oem, "Nvidia", take_ptr(&vendor));
        return r >= 0 ? take_ptr(&oem) : NULL;
}

static json_object* status_new(const Tray *tray, const TrayGpu *gpu, usec_t now) {
        CLEANUP(json_put_ptr) json_object *status = json_object_new_object();
        const char *state = "Enabled", *health = "OK";
        int r;

        if (gpu->lost)
                state = "UnavailableOffline", health = "Critical";
        else if (tray_gpu_is_resetting(gpu, now))
                state = "Starting";
        else if (tray_gpu_recovery_action(tray, gpu) != NVML_RECOVERY_NONE)
                health = "Warning";
        r = json_set(status, "Health", json_string(health));
        if (r >= 0)
                r = json_set(status, "State", json_string(state));
        return r >= 0 ? take_ptr(&status) : NULL;
}

static int processor(const Tray *tray, uint32_t index, usec_t now, json_object **ret) {
        CLEANUP(json_put_ptr) json_object *object = NULL;
        TrayGpu gpu = tray->gpus[index];
        char uri[sizeof GPU_PREFIX + 10];
        int r;

        tray_gpu_at(tray->header, &gpu, now);
        (void) snprintf(uri, sizeof uri, GPU_PREFIX "%u", index);
        r = resource_new(uri, "#Processor.v1_20_0.Processor", uri + sizeof PROCESSORS, "Processor", &object);
        if (r >= 0)
                r = json_set(object, "ProcessorType", json_string("GPU"));
        if (r >= 0)
                r = json_set(object, "Manufacturer", json_string("NVIDIA"));
        if (r >= 0)
                r = json_set(object, "Model", json_string(tray->header->model.name));
        if (r >= 0)
                r = json_set(object, "SerialNumber", json_string(gpu.serial));
        if (r >= 0)
                r = json_set(object, "UUID", json_string(startswith(gpu.uuid, "GPU-")));
        if (r >= 0)
                r = json_set(object, "Status", status_new(tray, &gpu, now));
        if (r >= 0)
                r = json_set(object, "Oem", vendor_part(tray, &gpu, now));
        if (r >= 0)
                *ret = take_ptr(&object);
        return r;
}

static const struct {
        const char *path;
        bool public;
        int (*read)(const Tray *tray, json_object **ret);
} resources[] = {
        { "/redfish", true, service_list },
        { BMC_ROOT, true, service_root },
        { SYSTEMS, false, systems },
        { SYSTEM, false, baseboard },
        { PROCESSORS, false, processors },
};

/* Its place in the table, or -ENOENT. */
static int resource_find(const char *path) {
        size_t n = strlen(path);

        if (n > 1 && path[n - 1] == '/')
                n--;
        for (size_t i = 0; i < ELEMENTSOF(resources); i++)
                if (strlen(resources[i].path) == n && strncmp(resources[i].path, path, n) == 0)
                        return (int) i;
        return -ENOENT;
}

bool bmc_path_is_public(const char *path) {
        int i = resource_find(path);

        return i >= 0 && resources[i].public;
}

int bmc_resource(const Tray *tray, const char *path, usec_t now, json_object **ret) {
        const char *gpu = startswith(path, GPU_PREFIX);
        char digits[12];
        uint32_t index;
        int i;

        i = resource_find(path);
        if (i >= 0)
                return resources[i].read(tray, ret);
        if (!gpu || snprintf(digits, sizeof digits, "%s", gpu) >= (int) sizeof digits)
                return -ENOENT;
        if (digits[0] != '\0' && digits[strlen(digits) - 1] == '/')
                digits[strlen(digits) - 1] = '\0';
        if (parse_u32(digits, UINT32_MAX, &index) < 0 || index >= tray->header->n_gpus)
                return -ENOENT;
        return processor(tray, index, now, ret);
}

json_object* bmc_error(const char *code, const char *message) {
        CLEANUP(json_put_ptr) json_object *outer = json_object_new_object();
        CLEANUP(json_put_ptr) json_object *error = json_object_new_object();
        char id[64];
        int r;

        (void) snprintf(id, sizeof id, "Base.1.18.%s", code);
        r = json_set(error, "code", json_string(id));
        if (r >= 0)
                r = json_set(error, "message", json_string(message));
        if (r >= 0)
                r = json_set(outer, "error", take_ptr(&error));
        return r >= 0 ? take_ptr(&outer) : NULL;
}
