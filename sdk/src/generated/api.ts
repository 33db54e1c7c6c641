// Made by `npm run gen` from openapi.json; not edited by hand.
export interface paths {
    "/api/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the service and what it leans on are well */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/env-check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which settings are set, never what they are */
        get: operations["getEnvCheck"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/capabilities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the service offers */
        get: operations["getCapabilities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/pricing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every lane with its price */
        get: operations["getPricing"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Providers with trust and pricing hints */
        get: operations["listProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Agent lanes with live pricing and statistics */
        get: operations["listAgents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lanes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The read-only lane catalogue */
        get: operations["listLanes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lane": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lanes under management */
        get: operations["manageLanes"];
        put?: never;
        /** Add a lane */
        post: operations["createLane"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lane/{agent_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One lane */
        get: operations["getLane"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Change price, model or status of a lane */
        patch: operations["updateLane"];
        trace?: never;
    };
    "/api/onboard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How to become a tenant, step by step */
        get: operations["describeOnboarding"];
        put?: never;
        /**
         * Become a tenant
         * @description The key is shown once. An Idempotency-Key belongs to the address it came from, since no tenant exists yet.
         */
        post: operations["onboard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who the caller is
         * @description A key of a suspended tenant answers 403 here and everywhere.
         */
        get: operations["getMe"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The plan's features and limits, and this month's usage */
        get: operations["getMyPlan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The token of the session in use, for a page that was loaded again */
        get: operations["getSession"];
        put?: never;
        /**
         * Exchange a key for a browser session
         * @description Sets an HttpOnly, SameSite=Lax cookie. Writes with it need the header x-csrf-token and our own origin; the session ends with its key.
         */
        post: operations["openSession"];
        /** End the session */
        delete: operations["endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants, newest first */
        get: operations["listTenants"];
        put?: never;
        /** Create a tenant with its first key */
        post: operations["createTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/tenants/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One tenant */
        get: operations["getTenant"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change plan, status or particulars of a tenant
         * @description A suspended tenant is refused with 403 on every node at once.
         */
        patch: operations["updateTenant"];
        trace?: never;
    };
    "/api/admin/tenants/{id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant's keys, newest first; never the keys themselves */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create a key for a tenant
         * @description Without scopes the key has those of an onboarded one: read, run, control, mandate.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a key at once, on every node */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replace a key; the old one stays valid for an overlap */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Route, execute, verify, settle and attest one task
         * @description Paid by x402. Without payment the answer is 402 with the price; a run that fails is not charged.
         */
        post: operations["run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/loop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The execution primitive below a run */
        post: operations["loop"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/loops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Recent loops; guests get an empty list */
        get: operations["listLoops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The tenant’s runs, newest first */
        get: operations["listRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drive an unfinished settlement
         * @description Asks the chain and, where the payment is unused, sends it again. A finished settlement is answered as it is.
         */
        post: operations["settle"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settle/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One settlement */
        get: operations["getSettlement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/settlements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Settlement records of the tenant; guests get an empty list */
        get: operations["listSettlements"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/log/checkpoint": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The signed head of the log */
        get: operations["getLogCheckpoint"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/log/tile/{*}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A tile of the Merkle tree, or a bundle of entries
         * @description C2SP tlog-tiles: `/api/log/tile/<L>/<N>[.p/<W>]` and `/api/log/tile/entries/<N>[.p/<W>]`.
         */
        get: operations["getLogTile"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/log/consistency": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Proof that a newer log only added to an older one */
        get: operations["getLogConsistency"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/log/witness": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Hand in a checkpoint that a known witness cosigned */
        post: operations["cosignLog"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/receipts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Public receipts, newest first
         * @description Heads of audit chains are listed only when asked for by kind.
         */
        get: operations["listReceipts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/receipts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One receipt */
        get: operations["getReceipt"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/receipts/{id}/proof": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Proof that a receipt is in the public log */
        get: operations["getReceiptProof"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Every public key that ever signed */
        get: operations["getJwks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/did.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The keys as a did:web document */
        get: operations["getDidDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/dev/faucet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Test USDC on the embedded chain */
        post: operations["devFaucet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/dev/rpc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** JSON-RPC of the embedded chain */
        post: operations["devRpc"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/facilitator/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** x402 facilitator: verify */
        post: operations["facilitator_verify"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/facilitator/settle": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** x402 facilitator: settle */
        post: operations["facilitator_settle"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/facilitator/supported": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** x402 facilitator: what it settles */
        get: operations["facilitator_supported"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: never;
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description All is well. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        status: "ok" | "degraded";
                        redis: "ok" | "embedded" | "not_configured" | "unreachable";
                        supabase: "ok" | "embedded" | "not_configured" | "unreachable";
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A dependency cannot be reached. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        status: "ok" | "degraded";
                        redis: "ok" | "embedded" | "not_configured" | "unreachable";
                        supabase: "ok" | "embedded" | "not_configured" | "unreachable";
                    };
                };
            };
        };
    };
    getEnvCheck: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        status: "ok" | "incomplete";
                        missing_required: string[];
                        services: {
                            [key: string]: {
                                required: {
                                    [key: string]: string;
                                };
                                optional: {
                                    [key: string]: string;
                                };
                            };
                        };
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getCapabilities: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        product_layers: string[];
                        free_endpoints: string[];
                        paid_endpoints: string[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getPricing: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        pricing_version: string;
                        cost_model: string;
                        product: string;
                        service: string;
                        /** @enum {string} */
                        currency: "USDC";
                        /** @enum {string} */
                        network: "eip155:8453";
                        /** @enum {string} */
                        settlement_asset: "USDC";
                        settlement_network_name: string;
                        orchestration_fee_usdc: number;
                        price_note: string;
                        summary: string;
                        primary_paid_endpoint: string;
                        secondary_paid_endpoint: string;
                        cheap_test: {
                            agent_id: string;
                            endpoint: string;
                            price_usdc: number;
                            note: string;
                        };
                        default_router_run: {
                            endpoint: string;
                            entry_price_usdc: number;
                            typical_range_usdc: {
                                min: number;
                                max: number;
                            };
                            note: string;
                        };
                        agents: {
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        }[];
                        lanes: {
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        }[];
                        default: {
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        };
                        discovery: {
                            free_endpoints: {
                                path: string;
                                purpose: string;
                            }[];
                            note: string;
                        };
                        paid_execution: {
                            path: string;
                            pricing_type: string;
                            from_usdc: number;
                            to_usdc?: number;
                            recommended?: boolean;
                            purpose: string;
                        }[];
                        governance: {
                            supported: boolean;
                            inputs: string[];
                            outcomes: string[];
                            stable_error_codes: string[];
                        };
                        routed_actions: {
                            path: string;
                            pricing_type: string;
                            status: string;
                            description: string;
                            fee_models: string[];
                        };
                        example_prices: {
                            category: string;
                            endpoint: string;
                            estimated_total_usdc: number;
                            note: string;
                        }[];
                        monetization_logic: {
                            principle: string;
                            why: string[];
                        };
                        marketplace_hints: {
                            category: string;
                            tags: string[];
                        };
                        docs: {
                            [key: string]: string;
                        };
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listProviders: {
        parameters: {
            query?: {
                category?: string;
                network?: string;
                trusted_only?: boolean;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        providers: {
                            id: string;
                            name: string;
                            resource: string;
                            description: string;
                            category: string;
                            network: string;
                            tags: string[];
                            trusted: boolean;
                            trust: {
                                score: number;
                                receipts: number;
                                success_rate: number | null;
                                last_seen_at: string | null;
                            };
                            pricing: {
                                scheme: string;
                                from_usdc: number;
                                to_usdc: number;
                            };
                            accepts: {
                                scheme: string;
                                network: string;
                                asset: string;
                                pay_to: string;
                            }[];
                            updated_at: string;
                        }[];
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listAgents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agents: ({
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        } & {
                            status: "active" | "paused";
                            stats: {
                                runs: number;
                                success_rate: number | null;
                                p50_ms: number | null;
                                p95_ms: number | null;
                            };
                        })[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listLanes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        lanes: ({
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        } & {
                            status: "active" | "paused";
                            model: string | null;
                        })[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    manageLanes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        lanes: ({
                            agent_id: string;
                            display_name: string;
                            description: string;
                            tier: string;
                            category: string;
                            recommended_use: string;
                            endpoint: string;
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            estimated_cost_usd: number;
                            estimated_margin_usd: number;
                            margin_percent: number;
                        } & {
                            status: "active" | "paused";
                            model: string | null;
                        })[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    createLane: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    display_name: string;
                    description?: string;
                    tier?: string;
                    category: string;
                    recommended_use?: string;
                    base_price_usdc: number;
                    estimated_cost_usd?: number;
                    status?: "active" | "paused";
                    model?: string | null;
                    agent_id: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        display_name: string;
                        description: string;
                        tier: string;
                        category: string;
                        recommended_use: string;
                        endpoint: string;
                        base_price_usdc: number;
                        orchestration_fee_usdc: number;
                        price_usdc: number;
                        estimated_cost_usd: number;
                        estimated_margin_usd: number;
                        margin_percent: number;
                    } & {
                        status: "active" | "paused";
                        model: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getLane: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        display_name: string;
                        description: string;
                        tier: string;
                        category: string;
                        recommended_use: string;
                        endpoint: string;
                        base_price_usdc: number;
                        orchestration_fee_usdc: number;
                        price_usdc: number;
                        estimated_cost_usd: number;
                        estimated_margin_usd: number;
                        margin_percent: number;
                    } & {
                        status: "active" | "paused";
                        model: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    updateLane: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    display_name?: string;
                    description?: string;
                    tier?: string;
                    category?: string;
                    recommended_use?: string;
                    base_price_usdc?: number;
                    estimated_cost_usd?: number;
                    status?: "active" | "paused";
                    model?: string | null;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        agent_id: string;
                        display_name: string;
                        description: string;
                        tier: string;
                        category: string;
                        recommended_use: string;
                        endpoint: string;
                        base_price_usdc: number;
                        orchestration_fee_usdc: number;
                        price_usdc: number;
                        estimated_cost_usd: number;
                        estimated_margin_usd: number;
                        margin_percent: number;
                    } & {
                        status: "active" | "paused";
                        model: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    describeOnboarding: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        endpoint: string;
                        required: string[];
                        optional: string[];
                        steps: string[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    onboard: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    org_name: string;
                    /** Format: email */
                    email: string;
                    use_case?: string;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenant_id: string;
                        /** @description Shown once; only its hash is kept. */
                        api_key: string;
                        key_prefix: string;
                        plan: "free" | "builder" | "team" | "enterprise";
                        next_steps: string[];
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getMe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        orgId: string;
                        org_name: string;
                        email: string;
                        plan: "free" | "builder" | "team" | "enterprise";
                        tenant_id: string;
                        role: "admin" | "owner" | "operator" | "agent" | "viewer";
                        auth: "key" | "session";
                        scopes: string[];
                        key_id: string;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getMyPlan: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        plan: "free" | "builder" | "team" | "enterprise";
                        features: {
                            [key: string]: boolean;
                        };
                        limits: {
                            [key: string]: number;
                        };
                        usage: {
                            runs: number;
                            spend_usdc: number;
                            webhook_subscriptions: number;
                            api_keys: number;
                            /** Format: date-time */
                            since: string;
                        };
                        renews_at: string | null;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Send it back as x-csrf-token with every write. */
                        csrf_token: string;
                        tenant_id: string;
                        /** Format: date-time */
                        expires_at?: string;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    openSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    api_key: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Send it back as x-csrf-token with every write. */
                        csrf_token: string;
                        tenant_id: string;
                        /** Format: date-time */
                        expires_at?: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        ended: boolean;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listTenants: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                plan?: "free" | "builder" | "team" | "enterprise";
                status?: "active" | "suspended";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenants: {
                            tenant_id: string;
                            org_name: string;
                            email: string;
                            use_case: string | null;
                            plan: "free" | "builder" | "team" | "enterprise";
                            status: "active" | "suspended";
                            billing_customer_id: string | null;
                            /** Format: date-time */
                            created_at: string;
                            /** Format: date-time */
                            updated_at: string;
                        }[];
                        has_more: boolean;
                        next_cursor: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    createTenant: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    org_name: string;
                    /** Format: email */
                    email: string;
                    use_case?: string;
                    plan?: "free" | "builder" | "team" | "enterprise";
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenant_id: string;
                        org_name: string;
                        email: string;
                        use_case: string | null;
                        plan: "free" | "builder" | "team" | "enterprise";
                        status: "active" | "suspended";
                        billing_customer_id: string | null;
                        /** Format: date-time */
                        created_at: string;
                        /** Format: date-time */
                        updated_at: string;
                        key_id: string;
                        /** @description Shown once; only its hash is kept. */
                        api_key: string;
                        key_prefix: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenant_id: string;
                        org_name: string;
                        email: string;
                        use_case: string | null;
                        plan: "free" | "builder" | "team" | "enterprise";
                        status: "active" | "suspended";
                        billing_customer_id: string | null;
                        /** Format: date-time */
                        created_at: string;
                        /** Format: date-time */
                        updated_at: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    updateTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    org_name?: string;
                    /** Format: email */
                    email?: string;
                    use_case?: string | null;
                    plan?: "free" | "builder" | "team" | "enterprise";
                    status?: "active" | "suspended";
                    billing_customer_id?: string | null;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        tenant_id: string;
                        org_name: string;
                        email: string;
                        use_case: string | null;
                        plan: "free" | "builder" | "team" | "enterprise";
                        status: "active" | "suspended";
                        billing_customer_id: string | null;
                        /** Format: date-time */
                        created_at: string;
                        /** Format: date-time */
                        updated_at: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listKeys: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: {
                            key_id: string;
                            tenant_id: string;
                            name: string;
                            key_prefix: string;
                            scopes: string[];
                            /** Format: date-time */
                            created_at: string;
                            expires_at: string | null;
                            revoked_at: string | null;
                            replaced_by: string | null;
                        }[];
                        has_more: boolean;
                        next_cursor: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    name?: string;
                    scopes?: ("read" | "run" | "control" | "mandate" | "admin")[];
                    /** Format: date-time */
                    expires_at?: string;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        key_id: string;
                        tenant_id: string;
                        name: string;
                        key_prefix: string;
                        scopes: string[];
                        /** Format: date-time */
                        created_at: string;
                        expires_at: string | null;
                        revoked_at: string | null;
                        replaced_by: string | null;
                        /** @description Shown once; only its hash is kept. */
                        api_key: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        key_id: string;
                        tenant_id: string;
                        name: string;
                        key_prefix: string;
                        scopes: string[];
                        /** Format: date-time */
                        created_at: string;
                        expires_at: string | null;
                        revoked_at: string | null;
                        replaced_by: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    overlap_seconds?: number;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        key_id: string;
                        tenant_id: string;
                        name: string;
                        key_prefix: string;
                        scopes: string[];
                        /** Format: date-time */
                        created_at: string;
                        expires_at: string | null;
                        revoked_at: string | null;
                        replaced_by: string | null;
                        /** @description Shown once; only its hash is kept. */
                        api_key: string;
                        replaces: {
                            key_id: string;
                            tenant_id: string;
                            name: string;
                            key_prefix: string;
                            scopes: string[];
                            /** Format: date-time */
                            created_at: string;
                            expires_at: string | null;
                            revoked_at: string | null;
                            replaced_by: string | null;
                        };
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description What went wrong, in a stable code and a sentence. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    run: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A task, with optional routing wishes, budget and policy. `intent` is an alias of `task`; `preferred_agent_id` and `lane_id` of `agent_id`. */
        requestBody: {
            content: {
                "application/json": {
                    task?: string;
                    intent?: string;
                    session_id?: string;
                    agent_id?: string;
                    preferred_agent_id?: string;
                    lane_id?: string;
                    constraints?: {
                        max_cost_usdc?: number;
                        priority?: "cheapest" | "balanced" | "quality" | "fastest";
                        category?: string;
                    };
                    options?: {
                        include_memory?: boolean;
                        write_memory?: boolean;
                        verify?: boolean;
                    };
                    quote?: {
                        quote_id: string;
                        expires_at: string;
                        signature: string;
                    };
                    budget?: {
                        budget_id?: string;
                        max_price_usdc?: number;
                        soft_max_price_usdc?: number;
                        strict?: boolean;
                        currency?: string;
                    };
                    policy?: {
                        policy_ids?: string[];
                        mode?: "enforce" | "warn" | "shadow";
                    };
                    payment?: {
                        wallet_id: string;
                        escrow?: boolean;
                    };
                    preauth_token?: string;
                    approval_id?: string;
                    override_token?: string;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "completed";
                        run_id: string;
                        loop_id: string;
                        session_id: string;
                        agent_id: string;
                        output: string;
                        price_usdc: number;
                        /** @description Atomic units (micro-USDC); authoritative. */
                        amount: string;
                        /** @description How the lane was chosen. */
                        route: {
                            [key: string]: unknown;
                        };
                        pricing: {
                            base_price_usdc: number;
                            orchestration_fee_usdc: number;
                            price_usdc: number;
                            pricing_version: string;
                        };
                        decision: string;
                        budget_outcome: string;
                        policy_applied: unknown[];
                        evidence: {
                            input_hash: string;
                            output_hash: string;
                        };
                        /** @description What was checked of the output, with score and grade. */
                        verification: {
                            [key: string]: unknown;
                        };
                        settlement: {
                            settlement_id: string;
                            status: string;
                            transaction: string | null;
                            network: string;
                            payer: string;
                            amount: string;
                        };
                        memory: {
                            read: string[];
                            written: string | null;
                        };
                        /** @description The signed receipt; `log` is filled in once it stands in the public log. */
                        receipt: {
                            [key: string]: unknown;
                        };
                        receipt_url: string;
                        /** @description Who did the work, in which mode, how long it took and what it used. */
                        execution: {
                            [key: string]: unknown;
                        };
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description x402 version 2 stands in the header PAYMENT-REQUIRED, version 1 in this body. */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        error: "payment_required";
                        message: string;
                        reason: string;
                        price_usdc: number;
                        amount: string;
                        quote: string;
                        /** @enum {number} */
                        x402Version: 1;
                        accepts: {
                            [key: string]: unknown;
                        }[];
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Refused by budget or policy, before any payment; with Retry-After it is a rate limit. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                        outcome?: string;
                        decision_id?: string;
                        approval_id?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Refused by budget or policy, before any payment; with Retry-After it is a rate limit. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                        outcome?: string;
                        decision_id?: string;
                        approval_id?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Default Response */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: string;
                        message: string;
                        run_id: string;
                        /** @enum {string} */
                        status: "failed";
                        stage: "route" | "policy" | "execute" | "verify" | "settle";
                        charged: boolean | null;
                        settlement: {
                            settlement_id: string;
                            status: string;
                            transaction: string | null;
                            network: string;
                            payer: string;
                            amount: string;
                        } | null;
                        retryable: boolean;
                        request_id: string;
                        receipt: {
                            [key: string]: unknown;
                        } | null;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    loop: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    input: string;
                    session_id?: string;
                    agent_id?: string;
                    proposed_actions?: {
                        [key: string]: unknown;
                    }[];
                    budget?: {
                        budget_id?: string;
                        max_price_usdc?: number;
                        soft_max_price_usdc?: number;
                        strict?: boolean;
                        currency?: string;
                    };
                    policy?: {
                        policy_ids?: string[];
                        mode?: "enforce" | "warn" | "shadow";
                    };
                    payment?: {
                        wallet_id: string;
                        escrow?: boolean;
                    };
                    preauth_token?: string;
                    approval_id?: string;
                    override_token?: string;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "success";
                        /** @enum {boolean} */
                        paid: true;
                        run_id: string;
                        loop_id: string;
                        session_id: string;
                        agent_id: string;
                        output: string;
                        actions: {
                            [key: string]: unknown;
                        }[];
                        cost_estimate: {
                            estimated_cost_usd: number;
                            /** @enum {string} */
                            currency: "USD";
                        };
                        price_usdc: number;
                        amount: string;
                        /** @description What was checked of the output. */
                        verification: {
                            [key: string]: unknown;
                        };
                        /** @description The signed receipt. */
                        receipt: {
                            [key: string]: unknown;
                        };
                        receipt_url: string;
                        settlement: {
                            settlement_id: string;
                            status: string;
                            transaction: string | null;
                            network: string;
                            payer: string;
                            amount: string;
                        };
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description x402 version 2 stands in the header PAYMENT-REQUIRED, version 1 in this body. */
            402: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        error: "payment_required";
                        message: string;
                        reason: string;
                        price_usdc: number;
                        amount: string;
                        quote: string;
                        /** @enum {number} */
                        x402Version: 1;
                        accepts: {
                            [key: string]: unknown;
                        }[];
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Refused by budget or policy, before any payment; with Retry-After it is a rate limit. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                        outcome?: string;
                        decision_id?: string;
                        approval_id?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Refused by budget or policy, before any payment; with Retry-After it is a rate limit. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                        outcome?: string;
                        decision_id?: string;
                        approval_id?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Default Response */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: string;
                        message: string;
                        run_id: string;
                        /** @enum {string} */
                        status: "failed";
                        stage: "route" | "policy" | "execute" | "verify" | "settle";
                        charged: boolean | null;
                        settlement: {
                            settlement_id: string;
                            status: string;
                            transaction: string | null;
                            network: string;
                            payer: string;
                            amount: string;
                        } | null;
                        retryable: boolean;
                        request_id: string;
                        receipt: {
                            [key: string]: unknown;
                        } | null;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listLoops: {
        parameters: {
            query?: {
                limit?: number;
                session_id?: string;
                /** @description Epoch milliseconds. */
                since?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        loops: {
                            loop_id: string;
                            run_id: string;
                            agent_id: string;
                            session_id: string;
                            created_at: string;
                            paid: boolean;
                            price_usdc: number;
                            grade: string | null;
                            output_hash: string | null;
                        }[];
                        count: number;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listRuns: {
        parameters: {
            query?: {
                limit?: number;
                /** @description The last run id of the page before. */
                after?: string;
                outcome?: "completed" | "blocked" | "pending" | "approved" | "escalated" | "failed";
                action?: string;
                since?: string;
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        runs: {
                            run_id: string;
                            outcome: string;
                            action: string;
                            agent_id: string;
                            price_usdc: number;
                            created_at: string;
                            receipt_url: string | null;
                        }[];
                        has_more: boolean;
                        next_after: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    settle: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    settlement_id?: string;
                    run_id?: string;
                    idempotency_key?: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        settlement_id: string;
                        run_id: string;
                        status: "pending" | "settled" | "failed" | "unknown" | "refunded";
                        method: string;
                        network: string;
                        asset: string;
                        payer: string;
                        pay_to: string;
                        amount: string;
                        amount_usdc: number;
                        nonce: string;
                        transaction: string | null;
                        block: number | null;
                        reason: string | null;
                        attempts: number;
                        created_at: string;
                        updated_at: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getSettlement: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        settlement_id: string;
                        run_id: string;
                        status: "pending" | "settled" | "failed" | "unknown" | "refunded";
                        method: string;
                        network: string;
                        asset: string;
                        payer: string;
                        pay_to: string;
                        amount: string;
                        amount_usdc: number;
                        nonce: string;
                        transaction: string | null;
                        block: number | null;
                        reason: string | null;
                        attempts: number;
                        created_at: string;
                        updated_at: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listSettlements: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
                state?: "pending" | "settled" | "failed" | "unknown" | "refunded";
                run_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        settlements: {
                            settlement_id: string;
                            run_id: string;
                            status: "pending" | "settled" | "failed" | "unknown" | "refunded";
                            method: string;
                            network: string;
                            asset: string;
                            payer: string;
                            pay_to: string;
                            amount: string;
                            amount_usdc: number;
                            nonce: string;
                            transaction: string | null;
                            block: number | null;
                            reason: string | null;
                            attempts: number;
                            created_at: string;
                            updated_at: string;
                        }[];
                        has_more: boolean;
                        next_cursor: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The credential lacks the right. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getLogCheckpoint: {
        parameters: {
            query: {
                /** @description The newest checkpoint that a witness cosigned */
                witnessed: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A C2SP checkpoint: origin, size and root, signed as a note. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getLogTile: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description <L>/<N>[.p/<W>] or entries/<N>[.p/<W>], N in groups of three digits */
                "*": string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Hashes of 32 bytes, or entries after their 16-bit length. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A valid credential is missing. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getLogConsistency: {
        parameters: {
            query: {
                /** @description Size of the older tree */
                from: number;
                /** @description Size of the newer tree; the published one by default */
                to?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        origin: string;
                        from: number;
                        to: number;
                        /** @description Hashes in base64, in the order of RFC 6962 section 2.1.2 */
                        proof: string[];
                        /** @description The newest checkpoint, which is that of `to` when `to` was left out */
                        checkpoint: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    cosignLog: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description A checkpoint of this log with cosignatures under it */
                    checkpoint: string;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        size: number;
                        accepted: {
                            witness: string;
                            /** Format: date-time */
                            cosigned_at: string;
                        }[];
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    listReceipts: {
        parameters: {
            query: {
                agent_id?: string;
                kind?: "run" | "loop" | "topup" | "preauth" | "rh_run" | "refund" | "correction" | "failure" | "audit_head";
                run_id?: string;
                /** @description Address that paid */
                payer?: string;
                /** @description Issued at this time or later */
                since?: string;
                /** @description Issued before this time */
                until?: string;
                limit: number;
                /** @description next_cursor of the page before */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        receipts: ({
                            /** @enum {string} */
                            schema: "run-receipt/v1";
                            receipt_id: string;
                            run_id: string;
                            /** @description The loop the run belongs to */
                            loop_id: string | null;
                            /** Format: date-time */
                            issued_at: string;
                            kind: "run" | "loop" | "topup" | "preauth" | "rh_run" | "refund" | "correction" | "failure" | "audit_head";
                            /** @description The lane that did the work */
                            agent_id: string | null;
                            /** @description How the lane was chosen */
                            route: {
                                [key: string]: unknown;
                            } | null;
                            /** @description What it cost and why */
                            pricing: {
                                [key: string]: unknown;
                            } | null;
                            /** @description What policies, mandates and people decided */
                            governance: {
                                [key: string]: unknown;
                            } | null;
                            /** @description SHA-256 of the canonical request */
                            request_hash: string | null;
                            /** @description SHA-256 of the task */
                            input_hash: string | null;
                            /** @description SHA-256 of the output */
                            output_hash: string | null;
                            /** @description What was checked about the output */
                            verification: {
                                [key: string]: unknown;
                            } | null;
                            /** @description The payment */
                            settlement: {
                                [key: string]: unknown;
                            } | null;
                            /** @description Hash of the receipt before this one of the same run */
                            prev_hash: string | null;
                            /** @description Whether money moved; false proves that a failed run cost nothing */
                            charged?: boolean;
                            signature: {
                                /** @enum {string} */
                                alg: "ed25519";
                                key_id: string;
                                value: string;
                            };
                            log: {
                                origin: string;
                                index: number;
                                inclusion_proof: string[];
                                checkpoint: string;
                            } | null;
                        } & {
                            [key: string]: unknown;
                        })[];
                        has_more: boolean;
                        next_cursor: string | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getReceipt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A signed public receipt. It holds hashes, never the task or the output. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        schema: "run-receipt/v1";
                        receipt_id: string;
                        run_id: string;
                        /** @description The loop the run belongs to */
                        loop_id: string | null;
                        /** Format: date-time */
                        issued_at: string;
                        kind: "run" | "loop" | "topup" | "preauth" | "rh_run" | "refund" | "correction" | "failure" | "audit_head";
                        /** @description The lane that did the work */
                        agent_id: string | null;
                        /** @description How the lane was chosen */
                        route: {
                            [key: string]: unknown;
                        } | null;
                        /** @description What it cost and why */
                        pricing: {
                            [key: string]: unknown;
                        } | null;
                        /** @description What policies, mandates and people decided */
                        governance: {
                            [key: string]: unknown;
                        } | null;
                        /** @description SHA-256 of the canonical request */
                        request_hash: string | null;
                        /** @description SHA-256 of the task */
                        input_hash: string | null;
                        /** @description SHA-256 of the output */
                        output_hash: string | null;
                        /** @description What was checked about the output */
                        verification: {
                            [key: string]: unknown;
                        } | null;
                        /** @description The payment */
                        settlement: {
                            [key: string]: unknown;
                        } | null;
                        /** @description Hash of the receipt before this one of the same run */
                        prev_hash: string | null;
                        /** @description Whether money moved; false proves that a failed run cost nothing */
                        charged?: boolean;
                        signature: {
                            /** @enum {string} */
                            alg: "ed25519";
                            key_id: string;
                            value: string;
                        };
                        log: {
                            origin: string;
                            index: number;
                            inclusion_proof: string[];
                            checkpoint: string;
                        } | null;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getReceiptProof: {
        parameters: {
            query: {
                /** @description Prove it against the newest checkpoint that a witness cosigned */
                witnessed: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        receipt_id: string;
                        /** @description SHA-256 of the entry: what the next receipt of the run names as prev_hash */
                        hash: string;
                        /** @description RFC 6962 leaf hash of the same bytes, in base64 */
                        leaf_hash: string;
                        /** @description Null until the receipt has its place, within about a second */
                        log: {
                            origin: string;
                            index: number;
                            inclusion_proof: string[];
                            checkpoint: string;
                        } | null;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description No such record. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getJwks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        keys: {
                            kty: string;
                            crv: string;
                            x: string;
                            kid: string;
                            use: string;
                            alg: string;
                            /** @description What the key signs, and nothing else */
                            purpose: string;
                        }[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    getDidDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description did:web document of the service. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        "@context": string[];
                        id: string;
                        verificationMethod: {
                            id: string;
                            type: string;
                            controller: string;
                            publicKeyJwk: {
                                kty: string;
                                crv: string;
                                x: string;
                            };
                        }[];
                        assertionMethod: string[];
                    };
                };
            };
            /** @description Too many requests. */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    devFaucet: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    address: string;
                    amount_usdc: number;
                };
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        address: string;
                        amount: string;
                        amount_usdc: number;
                        asset: string;
                        network: string;
                        transaction: string;
                    };
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    devRpc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    facilitator_verify: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    facilitator_settle: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description The request is not valid. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is too large. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description The body is not JSON. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    facilitator_supported: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description Something went wrong on our side. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A part that is needed cannot be reached at the moment. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        error: "budget_exceeded" | "policy_blocked" | "invalid_request" | "payment_required" | "error";
                        message: string;
                        code?: string;
                        request_id?: string;
                        retryable?: boolean;
                        details?: unknown;
                        next_action?: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
}
