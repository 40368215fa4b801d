/* SPDX-License-Identifier: MIT */
/* The whole of core, configuration and base in one program without libsystemd: that it links is the test. */
int main(void) {
        return 0;
}
